"""Reads parameters as the quantized blocks of a GGUF file, in the row order of a weight plan.

A quantization scheme that stores blocks of the same type can copy these rows without dequantizing
them; other schemes encode the floats that `assemble.blocks` returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wherry.models.weight_plan import ParameterPlan

from .tensors import GgufCheckpoint
from .types import Layout


@dataclass(frozen=True, slots=True)
class KeptParameter:
    """A parameter whose rows consist of quantized blocks of one type."""

    plan: ParameterPlan
    layout: Layout
    checkpoint: GgufCheckpoint

    @property
    def row_bytes(self) -> int:
        """Return the size of a row, in bytes."""
        return self.layout.row_bytes(self.plan.shape[-1])

    def blocks(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows [start, stop) of the parameter, uint8 [stop - start, row_bytes]."""
        out = np.empty((stop - start, self.row_bytes), np.uint8)
        first = 0  # index of the piece's first row in the parameter
        for piece in self.plan.pieces:
            size = piece.stop - piece.start
            low, high = max(start - first, 0), min(stop - first, size)
            if low < high:
                theirs = np.arange(piece.start + low, piece.start + high)
                if piece.order is not None:
                    theirs = piece.order.source(theirs)
                least = int(theirs.min())
                found = self.checkpoint.read_blocks(piece.name, least, int(theirs.max()) + 1)
                out[first + low - start : first + high - start] = found[theirs - least]
            first += size
        return out


def kept(plan: ParameterPlan, checkpoint: GgufCheckpoint) -> KeptParameter | None:
    """Return a parameter whose blocks can be copied unchanged, or None.

    None: the parameter is a vector, the conversion changes its values or cuts its rows, or its
    tensors have different types. The last case is common: files with mixed bit widths store v with
    more bits than q and k, and all three form one parameter.
    """
    tensors = [checkpoint.tensor(piece.name) for piece in plan.pieces]
    changed = plan.transpose or plan.unpacked or plan.unit_rows or plan.constant is not None
    if changed or len(plan.shape) < 2 or (plan.axis and len(tensors) > 1):
        return None
    matrices = all(len(t.shape) == 2 and t.keeps_bits for t in tensors)
    whole = all(t.shape[-1] == plan.shape[-1] for t in tensors)
    layouts = {t.layout for t in tensors}
    if not matrices or not whole or len(layouts) != 1:
        return None
    return KeptParameter(plan, layouts.pop(), checkpoint)
