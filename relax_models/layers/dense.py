"""Layers that several architectures share. Axes: n rows, m logit rows, d hidden, f feed-forward."""

from __future__ import annotations

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .activations import Activation, activate


class Embedding(nn.Embedding):
    """Token table [vocab, d] that may also be the LM head (tied embeddings)."""

    def logits(self, x: Tensor) -> Tensor:
        """Compute logits: x [m, d] -> [m, vocab]."""
        return op.matmul(x, op.permute_dims(self.weight))


EXACT = "exact"  # marks a parameter that every quantization scheme keeps in float32


def exact(shape: tuple[int, ...]) -> nn.Parameter:
    """Return a parameter that every scheme stores in float32."""
    param = nn.Parameter(shape)
    param.attrs[EXACT] = True
    return param


class Unquantized(nn.Linear):
    """Linear that no scheme quantizes: a router, whose choices are discrete."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.weight = exact((out_features, in_features))
        self.bias = exact((out_features,)) if bias else None


class GatedMLP(nn.Module):
    """Gated feed-forward: down(activation(gate(x)) * up(x)); with silu, SwiGLU."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        activation: Activation = "silu",
        bias: bool = False,
    ) -> None:
        self.activation = activation
        self.gate_up_proj = nn.Linear(hidden_size, 2 * intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        both = self.gate_up_proj(x)
        if self.activation != "silu":
            return self.down_proj(activate(both, self.activation, gated=True))
        gate, up = op.split(both, 2, axis=-1)
        return self.down_proj(op.silu(gate) * up)


class MLP(nn.Module):
    """Feed-forward without a gate: down(activation(up(x)))."""

    def __init__(
        self, hidden_size: int, intermediate_size: int, activation: Activation, bias: bool = False
    ) -> None:
        self.activation = activation
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        return self.down_proj(activate(self.up_proj(x), self.activation, gated=False))
