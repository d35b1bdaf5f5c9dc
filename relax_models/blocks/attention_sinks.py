"""Attention with sinks: a learned logit per head, which takes a part of the softmax."""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .. import decoder
from ..step import Batch, attention


class Attention(decoder.Attention):
    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        self.sinks = nn.Parameter((self.shape.heads,))

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        sinks = op.astype(self.sinks, "float32")
        return self.o_proj(attention(self.qkv_proj(x), batch, self.shape, sinks=sinks))
