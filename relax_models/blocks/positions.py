"""Positions without RoPE: learned position embeddings, and biases of scores (ALiBi)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from .. import decoder
from ..layers.dense import Embedding
from ..step import Batch


class PositionedDecoder(decoder.Decoder):
    """Decoder that adds learned position embeddings to the token embeddings."""

    before: ClassVar[int] = 0  # rows of the position table before position 0

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        rows = cfg.max_position_embeddings + self.before
        self.embed_positions = Embedding(rows, cfg.hidden_size)

    def embedded(self, batch: Batch) -> Tensor:
        """Return the input of the first layer, [n, d]."""
        positions = batch.positions + self.before if self.before else batch.positions
        return super().embedded(batch) + self.embed_positions(positions)


def alibi(heads: int, most: float = 8.0) -> tuple[float, ...]:
    """Return ALiBi's slopes of query heads: 2^(-most i / heads), i from 1.

    If `heads` is no power of two: the slopes of the next lower power, then every other slope of the
    next higher one. Source: https://arxiv.org/abs/2108.12409.
    """
    lower = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-most * i / lower) for i in range(1, lower + 1)]
    between = [2.0 ** (-most * i / (2 * lower)) for i in range(1, 2 * lower + 1, 2)]
    return tuple((slopes + between)[:heads])
