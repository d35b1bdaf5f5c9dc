"""Parameters in the file's own bits: which have them, and their blocks in a plan's order.

A scheme with a type's blocks takes these rows in place of the floats of `assemble.blocks`.
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
    """A parameter that is rows of blocks of one type."""

    plan: ParameterPlan
    layout: Layout
    checkpoint: GgufCheckpoint

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.layout.row_bytes(self.plan.shape[-1])

    def blocks(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Rows [start, stop) of `plan.rows`: uint8 [rows, row_bytes]."""
        out = np.empty((stop - start, self.row_bytes), np.uint8)
        first = 0  # the parameter's row where the piece begins
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
    """The parameter in the file's bits; None: it is a vector, or made of values or several types.

    Tensors that are joined into one parameter may have several types: files of mixed bits keep v in
    more bits than q and k.
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
