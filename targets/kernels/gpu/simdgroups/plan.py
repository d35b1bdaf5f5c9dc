"""Tile sizes of a GEMM on SIMD groups, chosen by the shape and the number of rows.

A row has the same bits with every tile, if the device always multiplies matrices in one way: the
sizes only affect speed.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.ops import FusedLinearSpec

from ..weights import GROUP

LANES = 32  # threads of a SIMD group
SIDE = 8  # rows and columns of a matrix
# Padding floats between rows in shared memory, which put the eight rows of a matrix into different
# banks.
_GAP = 8
# Blocks that keep a device busy; with at least this number, tiles are large.
_ENOUGH_BLOCKS = 96


@dataclass(frozen=True, slots=True)
class Matrices:
    """A GEMM tile, and how SIMD groups divide it."""

    rows: int
    columns: int
    down: int  # SIMD groups along the rows
    across: int  # SIMD groups along the columns

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the tile's rows and columns, and the threads of a block."""
        return self.rows, self.columns, LANES * self.down * self.across

    @property
    def own(self) -> tuple[int, int]:
        """Return how many matrices one SIMD group has along rows and along columns."""
        return self.rows // self.down // SIDE, self.columns // self.across // SIDE

    @property
    def x_stride(self) -> int:
        """Return the distance in floats between rows of x in shared memory."""
        return GROUP + _GAP

    @property
    def w_stride(self) -> int:
        """Return the distance in floats between rows of the weight's tile in shared memory.

        Rows of the sums, which replace the weight, have the same distance.
        """
        return self.columns + _GAP

    @property
    def w_at(self) -> int:
        """Return the offset in floats of the weight's tile, which follows the tile of x."""
        return self.rows * self.x_stride

    @property
    def floats(self) -> int:
        """Return the floats of shared memory: x and the weight, or the sums that replace them."""
        return max(self.w_at + GROUP * self.w_stride, self.rows * self.w_stride)


SMALL = Matrices(rows=32, columns=64, down=2, across=2)
LARGE = Matrices(rows=64, columns=64, down=4, across=2)


def tiles(spec: FusedLinearSpec) -> tuple[int, Matrices, Matrices]:
    """Return the largest number of rows for the small tile, the small tile, and the large tile."""
    across = -(-spec.out_features // LARGE.columns)
    most = LARGE.rows * (-(-_ENOUGH_BLOCKS // across) - 1)
    return max(SMALL.rows, most), SMALL, LARGE


def slots_tile() -> Matrices:
    """Return the tile for the rows of one expert, which are a small batch."""
    return SMALL
