"""How a linear on tensor cores is cut into blocks and warps: numbers, by shape and rows.

A row has the same bits whatever is chosen here (`weights.cuh` has the order of the sums), so all of
this is for speed alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    patch: int = 32  # blocks of other tokens beside each other: they read weights together
    far: bool = False  # whether totals lie in shared memory, too

    def shared_bytes(self) -> int:
        """Chunks of tokens, and totals."""
        return self.stages * self.stage_bytes() + (self.totals_bytes() if self.far else 0)

    def stage_bytes(self) -> int:
        """A chunk of tokens."""
        return self.token_tiles * TOKENS * CHUNK * 2

    def totals_bytes(self) -> int:
        """Sums of all rows and tokens of a block."""
        return self.warps * self.row_tiles * ROWS * self.token_tiles * TOKENS * 4

    def most_rows(self, out_features: int) -> int:
        """Of x, that make too few blocks of it."""
        across = -(-out_features // (self.warps * self.row_tiles * ROWS))
        return self.token_tiles * TOKENS * (-(-_ENOUGH_BLOCKS // across) - 1)


_MANY = Many(row_tiles=2, token_tiles=8, warps=8, stages=4)
# For float16 weights, twice the tokens. A multiplication of `_MANY` reads 512 / 8 bytes of such
# weights and 16 of tokens, one of `_WIDE` 512 / 16 and 16. An H100 gives each multiprocessor about
# 24 bytes a clock of what it caches; where prompts go at half the speed of cuBLAS's products it
# multiplies 0.4 times a clock, and reads 32 bytes or 19. With 8 bits `_MANY` reads 20, with 4 bits
# 14: it stays, because the sums of twice the tokens cost, too. They are 128 registers of a lane, so
# totals lie in shared memory, where the end of a slice takes up to 2,048 clocks (of 20,000 with K
# of 4,096, if no other warp multiplies meanwhile); the opening of 8 bits has no registers left; and
# the last blocks are filled less. Eight warps are two a scheduler: enough, because each multiplies
# eight times before it comes to the same sum again, at six clocks or more about 50, and the result
# is there after some 33; whoever waits for shared memory leaves the other warp's to the scheduler.
_WIDE = Many(row_tiles=2, token_tiles=16, warps=8, stages=3, patch=16, far=True)


@dataclass(frozen=True, slots=True)
class Plan:
    """Of one linear."""

    few: tuple[tuple[int, Few], ...]  # by the most rows that it is for, ascending
    many: Many  # for more
    slices: int
    wide: tuple[int, Many] | None = None  # for more than so many

    @staticmethod
    def of(spec: FusedLinearSpec, asked_bytes: int = 0) -> Plan:
        """The one plan of `spec`.

        Args:
            spec: of the linear.
            asked_bytes: shared memory that a block may ask for; 48 KB it has on every device.
        """
        row_tiles = 2 if spec.gated else 1  # a gate's, and that of what it is for
        slices = min(MOST_SLICES, spec.in_features // CHUNK)
        ahead = 8 // row_tiles  # so that two blocks share the registers of a multiprocessor
        one = Few(row_tiles, 1, ahead, normed=True)
        few = (
            *([(1, one)] if one.can_norm(spec, slices) else []),
            (8, Few(row_tiles, 1, ahead)),
            (16, Few(row_tiles, 2)),
            (max(32, _MANY.most_rows(spec.out_features)), Few(2, 4)),
        )
        wide = _wide(asked_bytes) if spec.scheme == "f16" else None
        if wide is None:
            return Plan(few, _MANY, slices)
        one_tile = _MANY.token_tiles * TOKENS  # by which a wide one would be half filled
        return Plan(few, _MANY, slices, (max(one_tile, wide.most_rows(spec.out_features)), wide))


def _wide(asked_bytes: int) -> Many | None:
    """With as many stages as fit: a block of sm_80 has room for two; None: not even that."""
    stages = min(_WIDE.stages, (asked_bytes - _WIDE.totals_bytes()) // _WIDE.stage_bytes())
    return replace(_WIDE, stages=stages) if stages >= 2 else None
