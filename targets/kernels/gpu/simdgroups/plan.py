"""Tile sizes of a GEMM, and its SIMD groups, by shape and rows.

A row has the same bits with every tile, if the device always multiplies matrices in one way: the
sizes only affect speed.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.ops import FusedLinearSpec

from ..weights import GROUP

LANES = 32  # of a SIMD group
SIDE = 8  # rows and columns of a matrix
# Padding between rows in shared memory, so that the eight rows of a matrix are in different banks.
_GAP = 8
# Blocks that keep a device busy; with at least as many, tiles are large.
_ENOUGH_BLOCKS = 96


@dataclass(frozen=True, slots=True)
class Matrices:
    """A tile, and the SIMD groups that share it."""

    rows: int
    columns: int
    down: int  # SIMD groups along the rows
    across: int  # and along the columns

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, threads."""
        return self.rows, self.columns, LANES * self.down * self.across

    @property
    def own(self) -> tuple[int, int]:
        """Matrices of one SIMD group, down and across."""
        return self.rows // self.down // SIDE, self.columns // self.across // SIDE

    @property
    def x_stride(self) -> int:
        """From one row of x in shared memory to the next."""
        return GROUP + _GAP

    @property
    def w_stride(self) -> int:
        """From one row of the weight's tile, or of sums, in shared memory to the next."""
        return self.columns + _GAP

    @property
    def w_at(self) -> int:
        """Offset of the weight's tile, after the tile of x."""
        return self.rows * self.x_stride

    @property
    def floats(self) -> int:
        """Floats in shared memory: x and the weight, which the sums replace."""
        return max(self.w_at + GROUP * self.w_stride, self.rows * self.w_stride)


SMALL = Matrices(rows=32, columns=64, down=2, across=2)
LARGE = Matrices(rows=64, columns=64, down=4, across=2)


def tiles(spec: FusedLinearSpec) -> tuple[int, Matrices, Matrices]:
    """The largest number of rows for the small tile, and the small and the large tile."""
    across = -(-spec.out_features // LARGE.columns)
    most = LARGE.rows * (-(-_ENOUGH_BLOCKS // across) - 1)
    return max(SMALL.rows, most), SMALL, LARGE


def slots_tile() -> Matrices:
    """The tile for rows of one expert, a small batch."""
    return SMALL
