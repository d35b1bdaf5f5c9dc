"""How a linear on tensor cores is cut into blocks and warps: numbers, by shape and rows.

A row has the same bits whatever is chosen here (`weights.cuh` has the order of the sums), so all of
this is for speed alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...specs import FusedLinearSpec
from .layout import CHUNK, ROWS

TOKENS = 8  # of a token tile: of one multiplication
PREPARE_THREADS = 256
MOST_SLICES = 8
_SHARED_BYTES = 49152  # of a block, on every device
# Blocks that keep a device busy with prompts: from so many on `Many` takes over from `Few`.
_ENOUGH_BLOCKS = 96


@dataclass(frozen=True, slots=True)
class Few:
    """A block has `row_tiles`, a warp a slice of K: weights come as fast as memory gives them."""

    row_tiles: int
    token_tiles: int
    ahead: int = 4  # pieces of weights that a lane has under way: 4 or 8
    normed: bool = False  # for one row, float32, which each block normalises: a launch less

    def shared_bytes(self, spec: FusedLinearSpec, slices: int) -> int:
        """Sums of the slices, and the row."""
        return self.sums_bytes(slices) + (spec.in_features * 2 if self.normed else 0)

    def sums_bytes(self, slices: int) -> int:
        """Sums of the slices."""
        return slices * self.row_tiles * self.token_tiles * ROWS * TOKENS * 4

    def can_norm(self, spec: FusedLinearSpec, slices: int) -> bool:
        """Whether a block has the threads and the memory to normalise the row."""
        if spec.norm_eps is None or spec.x_dtype != "float32" or slices < MOST_SLICES:
            return False
        return self.shared_bytes(spec, slices) <= _SHARED_BYTES


@dataclass(frozen=True, slots=True)
class Many:
    """Each of a block's warps has `row_tiles`, all of them the block's tokens."""

    row_tiles: int
    token_tiles: int
    warps: int
    stages: int  # chunks of tokens in shared memory

    def shared_bytes(self) -> int:
        """Chunks of tokens."""
        return self.stages * self.token_tiles * TOKENS * CHUNK * 2


@dataclass(frozen=True, slots=True)
class Plan:
    """Of one linear."""

    few: tuple[tuple[int, Few], ...]  # by the most rows that it is for, ascending
    many: Many  # for more
    slices: int

    @staticmethod
    def of(spec: FusedLinearSpec) -> Plan:
        """The one plan of `spec`; all are for devices with 48 KB of shared memory a block."""
        row_tiles = 2 if spec.gated else 1  # a gate's, and that of what it is for
        many = Many(row_tiles=2, token_tiles=8, warps=8, stages=4)
        rows_a_block = many.warps * many.row_tiles * ROWS
        across = -(-spec.out_features // rows_a_block)
        most_few = many.token_tiles * TOKENS * (-(-_ENOUGH_BLOCKS // across) - 1)
        slices = min(MOST_SLICES, spec.in_features // CHUNK)
        ahead = 8 // row_tiles  # so that two blocks share the registers of a multiprocessor
        one = Few(row_tiles, 1, ahead, normed=True)
        few = (
            *([(1, one)] if one.can_norm(spec, slices) else []),
            (8, Few(row_tiles, 1, ahead)),
            (16, Few(row_tiles, 2)),
            (max(32, most_few), Few(2, 4)),
        )
        return Plan(few, many, slices)
