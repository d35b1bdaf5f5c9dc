"""Tile sizes of a linear of experts, by shape and rows.

They do not change a row's bits, as in `plan.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.ops import ExpertLinearSpec

from . import layout
from .layout import ROWS
from .plan import MOST_SLICES, Gemm, Gemv

_MOST_ROW_BYTES = 65536  # of rows of x in a block's shared memory; from sm_80 on all have 99 KB


@dataclass(frozen=True, slots=True)
class ExpertPlan:
    """Plan of one linear of experts."""

    row_tiles: int  # of a block for slots of a single row
    ahead: int  # loads of weights that a lane of such a block has in flight
    turns: int  # slots that such a block computes and adds: all of a row, or one
    gemv: tuple[tuple[int, Gemv], ...]  # by the largest number of slots per expert, ascending
    gemm: Gemm  # for more slots
    slices: int

    @staticmethod
    def of(spec: ExpertLinearSpec) -> ExpertPlan:
        """The one plan of `spec`."""
        row_tiles = 2 if spec.gate else 1  # of the gate and of the up projection
        whole_row = spec.combined and spec.top_k * spec.in_features * 2 <= _MOST_ROW_BYTES
        warps = 1
        while warps < 8 and warps * 2 * ROWS < spec.out_features:
            warps *= 2
        return ExpertPlan(
            row_tiles=row_tiles,
            ahead=4 if whole_row else 8 // row_tiles,  # with more the assembler spills
            turns=spec.top_k if whole_row else 1,
            gemv=((2, Gemv(row_tiles, 1, 8 // row_tiles)), (32, Gemv(2, 4))),
            gemm=Gemm(row_tiles=2, token_tiles=8, warps=warps, stages=4),
            slices=min(MOST_SLICES, layout.chunks(spec.linear())),
        )

    def row_bytes(self, spec: ExpertLinearSpec) -> int:
        """Shared memory of a block of one row: rows of x, and the slices' sums."""
        return self.turns * (spec.in_features * 2 + self.slices * self.row_tiles * ROWS * 4)
