"""Attention with a LayerNorm of each query and key head, before RoPE.

Axes: n rows, d hidden, h query heads, g kv heads, e head dim.
"""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .. import decoder
from ..arch import WeightRule, constant, rename, stack
from ..layers.norms import LayerNorm
from ..step import Batch, attention


class SharedNorm(nn.Module):
    """LayerNorm of each head, whose weight and bias [e] all heads share."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        self.heads, self.head_dim = heads, head_dim
        self.norm = LayerNorm(head_dim, eps)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each head: x [n, heads * e] -> [n, heads * e]."""
        n, width = x.shape[0], self.heads * self.head_dim
        each = self.norm(op.reshape(x, (n * self.heads, self.head_dim)))
        return op.reshape(each, (n, width))


class OwnNorm(nn.Module):
    """LayerNorm of each head, with a weight per head [heads, e] and no bias."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        self.heads, self.head_dim = heads, head_dim
        self.unit = LayerNorm(head_dim, eps, bias=False)  # a LayerNorm whose weight is one
        self.factors = nn.Parameter((heads, head_dim))

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each head: x [n, heads * e] -> [n, heads * e]."""
        n, width = x.shape[0], self.heads * self.head_dim
        each = self.unit(op.reshape(x, (n * self.heads, self.head_dim)))
        return op.reshape(each, (n, width)) * op.reshape(self.factors, (width,))


class Attention(decoder.Attention):
    """Attention with an optional LayerNorm of each query and key head (`qk_layernorm`)."""

    norm: type[nn.Module] = SharedNorm

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        shape, eps = self.shape, cfg.norm_eps

        def norm_of(heads: int) -> nn.Module | None:
            return self.norm(heads, shape.head_dim, eps) if cfg.qk_layernorm else None

        self.q_layernorm, self.k_layernorm = norm_of(shape.heads), norm_of(shape.kv_heads)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        qkv = decoder.normed_qkv(self.qkv_proj(x), self.shape, self.q_layernorm, self.k_layernorm)
        return self.o_proj(attention(qkv, batch, self.shape))


class OwnNormAttention(Attention):
    norm = OwnNorm


# Weight rules of checkpoints that have a norm tensor for each head.
OWN: tuple[WeightRule, ...] = tuple(
    rule
    for name in ("q_layernorm", "k_layernorm")
    for rule in (
        constant(f"{name}.unit.weight", 1.0),
        stack(f"{name}.factors", f"{name}.norms.{{}}.weight"),
    )
)
# Weight rules of checkpoints whose heads share a norm tensor.
SHARED: tuple[WeightRule, ...] = tuple(
    rename(f"{name}.norm.{kind}", f"{name}.{kind}")
    for name in ("q_layernorm", "k_layernorm")
    for kind in ("weight", "bias")
)
