"""Tile sizes of a linear on tensor cores, by shape and rows.

They only affect speed: a row has the same bits with any plan (`weights.cuh` has the order of sums).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wherry.ops import FusedLinearSpec

from .layout import CHUNK, ROWS

TOKENS = 8  # of a token tile: of one multiplication
PREPARE_THREADS = 256
MOST_SLICES = 8
_SHARED_BYTES = 49152  # of a block, on every device
# Blocks that keep a device busy: prompts with at least as many blocks use `Gemm`.
_ENOUGH_BLOCKS = 96


@dataclass(frozen=True, slots=True)
class Gemv:
    """GEMV and small batches, limited by memory: a block has `row_tiles`, a warp a slice of K."""

    row_tiles: int
    token_tiles: int
    ahead: int = 4  # loads of weights that a lane has in flight: 4 or 8
    normed: bool = False  # each block normalises the single float32 row itself: one launch fewer

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
class Gemm:
    """GEMM, limited by the tensor cores: a warp has `row_tiles`, and all tokens of its block."""

    row_tiles: int
    token_tiles: int
    warps: int
    stages: int  # chunks of tokens in shared memory
    patch: int = 32  # neighbouring blocks of other tokens, which share weights in L2
    shared_totals: bool = False  # whether the running totals are in shared memory, too

    def shared_bytes(self) -> int:
        """Chunks of tokens, and totals."""
        return self.stages * self.stage_bytes() + (self.totals_bytes() if self.shared_totals else 0)

    def stage_bytes(self) -> int:
        """A chunk of tokens."""
        return self.token_tiles * TOKENS * CHUNK * 2

    def totals_bytes(self) -> int:
        """Sums of all rows and tokens of a block."""
        return self.warps * self.row_tiles * ROWS * self.token_tiles * TOKENS * 4

    def most_rows(self, out_features: int) -> int:
        """The largest number of rows of x that leaves the device with too few blocks."""
        across = -(-out_features // (self.warps * self.row_tiles * ROWS))
        return self.token_tiles * TOKENS * (-(-_ENOUGH_BLOCKS // across) - 1)


_GEMM = Gemm(row_tiles=2, token_tiles=8, warps=8, stages=4)
# Float16 weights take a tile of twice the tokens, because the L1 cache bounds `_GEMM`: one
# multiplication loads 512 / 8 bytes of such weights and 16 of tokens, with `_WIDE_GEMM` 512 / 16
# and 16. An H100 delivers about 24 bytes a clock to each multiprocessor; at half the speed of
# cuBLAS it multiplies 0.4 times a clock, so it loads 32 bytes or 19. With 8 bits `_GEMM` loads
# 20, with 4 bits 14: these keep it, because the sums of twice the tokens have a price, too. The
# sums fill 128 registers of a lane, so the running totals move to shared memory, where the end of
# a slice takes up to 2,048 clocks (of 20,000 with K = 4,096, if no other warp multiplies
# meanwhile). Dequantizing 8 bits has no registers left, and the last blocks have more padding.
# Eight warps are two a scheduler, which is enough: a warp multiplies eight times before it
# returns to the same sum (at six clocks or more, about 50), and a result takes some 33 clocks.
# While one warp waits for shared memory, the scheduler runs the other.
_WIDE_GEMM = Gemm(row_tiles=2, token_tiles=16, warps=8, stages=3, patch=16, shared_totals=True)


@dataclass(frozen=True, slots=True)
class Plan:
    """Kernels of one linear, by the number of rows."""

    gemv: tuple[tuple[int, Gemv], ...]  # (largest number of rows, kernel), ascending
    gemm: Gemm  # for more rows
    slices: int
    wide: tuple[int, Gemm] | None = None  # (rows, kernel for more rows than that)

    @staticmethod
    def of(spec: FusedLinearSpec, asked_bytes: int = 0) -> Plan:
        """The one plan of `spec`.

        Args:
            spec: of the linear.
            asked_bytes: shared memory that a launch may request; every device has 48 KB.
        """
        row_tiles = 2 if spec.gated else 1  # of the gate and of the up projection
        slices = min(MOST_SLICES, spec.in_features // CHUNK)
        ahead = 8 // row_tiles  # so that two blocks share the registers of a multiprocessor
        one = Gemv(row_tiles, 1, ahead, normed=True)
        gemv = (
            *([(1, one)] if one.can_norm(spec, slices) else []),
            (8, Gemv(row_tiles, 1, ahead)),
            (16, Gemv(row_tiles, 2)),
            (max(32, _GEMM.most_rows(spec.out_features)), Gemv(2, 4)),
        )
        wide = _wide(asked_bytes) if spec.scheme == "f16" else None
        if wide is None:
            return Plan(gemv, _GEMM, slices)
        one_tile = _GEMM.token_tiles * TOKENS  # a wide tile would be half empty
        return Plan(gemv, _GEMM, slices, (max(one_tile, wide.most_rows(spec.out_features)), wide))


def _wide(asked_bytes: int) -> Gemm | None:
    """`_WIDE_GEMM` with the stages that fit (two on sm_80), or None if fewer than two fit."""
    stages = min(
        _WIDE_GEMM.stages, (asked_bytes - _WIDE_GEMM.totals_bytes()) // _WIDE_GEMM.stage_bytes()
    )
    return replace(_WIDE_GEMM, stages=stages) if stages >= 2 else None
