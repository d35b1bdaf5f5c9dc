"""Positions without a rotation: tables that were learned, and biases of scores (ALiBi)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from . import decoder
from .layers import Embedding
from .state import Batch


class PositionedDecoder(decoder.Decoder):
    """Adds a row of a table, one a position, to what is embedded."""

    before: ClassVar[int] = 0  # rows of the table before that of position 0

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        rows = cfg.max_position_embeddings + self.before
        self.embed_positions = Embedding(rows, cfg.hidden_size)

    def embedded(self, batch: Batch) -> Tensor:
        """What the first layer reads, [n, d]."""
        positions = batch.positions + self.before if self.before else batch.positions
        return super().embedded(batch) + self.embed_positions(positions)


def alibi(heads: int, most: float = 8.0) -> tuple[float, ...]:
    """Slopes of query heads (https://arxiv.org/abs/2108.12409): 2^(-most i / heads), i from 1.

    If heads are no power of two: those of the next lower one, then every other one of the next.
    """
    lower = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-most * i / lower) for i in range(1, lower + 1)]
    between = [2.0 ** (-most * i / (2 * lower)) for i in range(1, 2 * lower + 1, 2)]
    return tuple((slopes + between)[:heads])
