"""Per-layer inputs (Gemma 3n and 4): layers have token embeddings of their own."""

from __future__ import annotations

from math import sqrt
from typing import Any

from tvm import te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from ..layers.activations import activate
from ..layers.dense import Embedding
from ..layers.norms import RMSNorm


class LayerInput(nn.Module):
    """Adds a layer's own token embedding to the hidden state, through a gate (per-layer inputs)."""

    def __init__(self, cfg: Any, layer: int) -> None:
        p, d = cfg.hidden_size_per_layer_input, cfg.hidden_size
        self.first = layer * p  # first column of the layer in the per-layer inputs
        self.gate = nn.Linear(d, p, bias=False)
        self.projection = nn.Linear(p, d, bias=False)
        self.norm = cfg.norm()

    def forward(self, x: Tensor, inputs: Tensor) -> Tensor:
        """Add the layer's embedding: x [n, d], inputs [n, layers * p] -> [n, d]."""
        gate = activate(self.gate(x), "gelu_tanh", gated=False)
        first = self.first
        gated = op.tensor_expr_op(
            lambda g, t: te.compute(g.shape, lambda i, k: g[i, k] * t[i, first + k], "let_in"),
            "let_in",
            [gate, inputs],
        )
        return x + self.norm(self.projection(gated))


class LayerTables(nn.Module):
    """Computes per-layer inputs: a table lookup per layer plus a projection of the embeddings."""

    def __init__(self, cfg: Any) -> None:
        self.layers, self.size = cfg.num_hidden_layers, cfg.hidden_size_per_layer_input
        self.hidden_size = cfg.hidden_size
        width = self.layers * self.size
        self.table = Embedding(cfg.vocab_size_per_layer_input, width)
        self.projection = nn.Linear(cfg.hidden_size, width, bias=False)
        self.norm = RMSNorm(self.size, cfg.rms_norm_eps)

    def forward(self, tokens: Tensor, x: Tensor) -> Tensor:
        """Return inputs [n, layers * p] for tokens int32 [n] with embeddings x [n, d]."""
        n = x.shape[0]
        projected = self.projection(x) * self.hidden_size**-0.5
        projected = self.norm(op.reshape(projected, (n * self.layers, self.size)))
        projected = op.reshape(projected, (n, self.layers * self.size))
        return (projected + self.table(tokens) * sqrt(self.size)) * sqrt(0.5)
