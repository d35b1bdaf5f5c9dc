"""Attention whose result is multiplied by the sigmoid of a gate, before the output projection.

Axes: n rows, d hidden, h query heads, e head dim.
"""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .. import decoder
from ..step import Batch


class GatedAttention(decoder.HeadNormAttention):
    """Attention with a gate for each element of each head, and norms of q and k heads."""

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        width = self.shape.heads * self.shape.head_dim
        self.gate_proj = nn.Linear(cfg.hidden_size, width, bias=False)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        gate = op.sigmoid(self.gate_proj(x))
        return self.o_proj(self.attended(x, batch) * gate)
