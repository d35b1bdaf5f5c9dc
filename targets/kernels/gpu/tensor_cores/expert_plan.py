"""How a linear of experts is cut into blocks and warps: numbers, by shape and rows.

A row has the same bits whatever is chosen here, as with `plan.py`.
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

    row_tiles: int  # of a block that has slots of one row alone
    ahead: int  # pieces of weights that a lane has under way there
    turns: int  # slots that such a block goes through, and adds up: all of a row, or one
    gemv: tuple[tuple[int, Gemv], ...]  # by the most slots an expert that it is for, ascending
    gemm: Gemm  # for more
    slices: int

    @staticmethod
    def of(spec: ExpertLinearSpec) -> ExpertPlan:
        """The one plan of `spec`."""
        row_tiles = 2 if spec.gate else 1  # a gate's, and that of what it is for
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
