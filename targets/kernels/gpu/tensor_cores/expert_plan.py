"""Tile sizes of an expert linear on tensor cores, chosen by shape and number of rows.

As in `plan.py`, they do not change a row's bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.ops import ExpertLinearSpec

from . import layout
from .layout import ROWS
from .plan import MOST_SLICES, Gemm, Gemv

# bytes of rows of x in a block's shared memory; from sm_80 on all GPUs have 99 KB
_MOST_ROW_BYTES = 65536


@dataclass(frozen=True, slots=True)
class ExpertPlan:
    """Kernels and tile sizes of one expert linear."""

    row_tiles: int  # row tiles of the weight per block, for slots of a single row
    ahead: int  # weight loads that a lane of such a block has in flight
    turns: int  # slots that such a block computes and adds: all slots of a row, or one
    gemv: tuple[tuple[int, Gemv], ...]  # (largest number of slots per expert, kernel), ascending
    gemm: Gemm  # kernel for more slots per expert
    slices: int

    @staticmethod
    def of(spec: ExpertLinearSpec) -> ExpertPlan:
        """Return the kernels of the expert linear `spec` and their tile sizes."""
        row_tiles = 2 if spec.gate else 1  # one for the gate, one for the up projection
        full_row = spec.combined and spec.top_k * spec.in_features * 2 <= _MOST_ROW_BYTES
        warps = 1
        while warps < 8 and warps * 2 * ROWS < spec.out_features:
            warps *= 2
        return ExpertPlan(
            row_tiles=row_tiles,
            # with more loads in flight the assembler spills registers
            ahead=4 if full_row else 8 // row_tiles,
            turns=spec.top_k if full_row else 1,
            gemv=((2, Gemv(row_tiles, 1, 8 // row_tiles)), (32, Gemv(2, 4))),
            gemm=Gemm(row_tiles=2, token_tiles=8, warps=warps, stages=4),
            slices=min(MOST_SLICES, layout.chunks(spec.linear())),
        )

    def row_bytes(self, spec: ExpertLinearSpec) -> int:
        """Return the shared memory of a one-row block in bytes: rows of x, and the slices' sums."""
        return self.turns * (spec.in_features * 2 + self.slices * self.row_tiles * ROWS * 4)
