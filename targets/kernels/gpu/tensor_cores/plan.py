"""Tile sizes of a linear on tensor cores, chosen by shape and number of rows.

They only affect speed: a row has the same bits with any plan (`weights.cuh` has the order of sums).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wherry.ops import FusedLinearSpec

from . import layout
from .layout import CHUNK, ROWS, chunk_bytes

TOKENS = 8  # tokens (rows of x) of a token tile, the N of one matrix multiplication
PREPARE_THREADS = 256
MOST_SLICES = 8
_SHARED_BYTES = 49152  # bytes of shared memory that a block has on every device
# Blocks that keep a device busy: prompts with at least this number of blocks use `Gemm`.
_ENOUGH_BLOCKS = 96
_MOST_GROUP_BYTES = 3 << 30  # packed bytes of a weight that `WarpgroupGemm` reads

# Of `StreamGemv`: bytes that a warp copies at a time, units in shared memory, blocks from which
# on they walk over several groups of row tiles, and groups of a block.
_SMALL_UNIT_BYTES, _MOST_STAGES, _BLOCKS, _MOST_WALK = 1280, 4, 1500, 4


@dataclass(frozen=True, slots=True)
class Gemv:
    """Kernel for GEMV and small batches, bound by memory.

    A block computes `row_tiles` of the weight, a warp of it a slice of K.
    """

    row_tiles: int
    token_tiles: int
    ahead: int = 4  # weight loads that a lane has in flight: 4 or 8
    # each block normalizes the single float32 row itself, which saves a launch
    normed: bool = False

    @property
    def blocks_at_a_time(self) -> int:
        """Return the blocks that share the registers of a multiprocessor; 0: not limited."""
        return 0

    def shared_bytes(self, spec: FusedLinearSpec, slices: int) -> int:
        """Return the bytes of shared memory of a block: sums of the slices, and a normed row."""
        return self.sums_bytes(slices) + (spec.in_features * 2 if self.normed else 0)

    def sums_bytes(self, slices: int) -> int:
        """Return the bytes of shared memory for the sums of the slices."""
        return slices * self.row_tiles * self.token_tiles * ROWS * TOKENS * 4

    def blocks(self, spec: FusedLinearSpec) -> int:
        """Return the number of blocks that read the weight for the same tokens."""
        return self._groups(spec)

    def _groups(self, spec: FusedLinearSpec) -> int:
        return -(-spec.out_features // (ROWS * self.row_tiles))

    def can_norm(self, spec: FusedLinearSpec, slices: int) -> bool:
        """Return whether a block has the threads and the memory to normalize the row."""
        if spec.norm_eps is None or spec.x_dtype != "float32" or slices < MOST_SLICES:
            return False
        return self.shared_bytes(spec, slices) <= _SHARED_BYTES


@dataclass(frozen=True, slots=True)
class StreamGemv(Gemv):
    """As `Gemv`, with weights that arrive in shared memory by asynchronous copies.

    A block walks over several groups of `row_tiles`, and copies continue meanwhile.
    """

    unit: int = 1  # chunks of a row tile that a warp copies at a time
    stages: int = 4  # units that shared memory holds, one of which is read
    walk: int = 1  # groups of row tiles of a block

    @property
    def blocks_at_a_time(self) -> int:
        """Return the blocks that share the registers of a multiprocessor."""
        return 3

    def blocks(self, spec: FusedLinearSpec) -> int:
        """Return the number of blocks that read the weight for the same tokens."""
        return -(-self._groups(spec) // self.walk)

    def shared_bytes(self, spec: FusedLinearSpec, slices: int) -> int:
        """Return the bytes of shared memory of a block.

        Units of copies, sums of the slices of two groups, and a normed row.
        """
        copies = slices * self.stages * self.unit * self.row_tiles * chunk_bytes(spec.scheme)
        sums = 2 * self.sums_bytes(slices) // (TOKENS if self.normed else 1)
        return copies + sums + (spec.in_features * 2 if self.normed else 0)


@dataclass(frozen=True, slots=True)
class Gemm:
    """Kernel for GEMM, bound by tensor cores.

    A warp computes `row_tiles` of the weight, and all tokens of its block.
    """

    row_tiles: int
    token_tiles: int
    warps: int
    stages: int  # chunks of tokens that shared memory holds at a time
    patch: int = 32  # neighbouring blocks of other tokens, which share weights in L2
    shared_totals: bool = False  # whether the running totals are in shared memory, too

    def shared_bytes(self) -> int:
        """Return the bytes of shared memory of a block: chunks of tokens, and totals."""
        return self.stages * self.stage_bytes() + (self.totals_bytes() if self.shared_totals else 0)

    def stage_bytes(self) -> int:
        """Return the bytes of one chunk of tokens in shared memory."""
        return self.token_tiles * TOKENS * CHUNK * 2

    def totals_bytes(self) -> int:
        """Return the bytes of the sums of all rows and tokens of a block."""
        return self.warps * self.row_tiles * ROWS * self.token_tiles * TOKENS * 4

    def most_rows(self, out_features: int) -> int:
        """Return the largest number of rows of x that leaves the device with too few blocks."""
        across = -(-out_features // (self.warps * self.row_tiles * ROWS))
        return self.token_tiles * TOKENS * (-(-_ENOUGH_BLOCKS // across) - 1)


GROUP_TOKENS = 128  # of a block of `WarpgroupGemm`
GROUP_WARPS = 8  # of a block that multiply, a row tile each
_COPY_WARPS = 4
_FEW_GROUP_BLOCKS = 48  # with this number of blocks and more, `WarpgroupGemm` is the fastest


@dataclass(frozen=True, slots=True)
class WarpgroupGemm:
    """Kernel for GEMM by warpgroups (sm_90): rows of x are prepared as tiles of 128."""

    stages: int  # chunks of tokens and weights that shared memory holds at a time
    patch: int = 32  # neighbouring blocks of other tokens, which share weights in L2

    threads = (GROUP_WARPS + _COPY_WARPS) * 32

    def shared_bytes(self, spec: FusedLinearSpec) -> int:
        """Return the bytes of shared memory of a block."""
        weight = spec.linear()
        weights = GROUP_WARPS * 4 * layout.size(weight)
        weights //= layout.tiles(weight) * layout.chunks(weight)
        stage = GROUP_TOKENS * CHUNK * 2 + -(-weights // 1024) * 1024
        return 1024 + self.stages * (stage + 16)

    @staticmethod
    def of(spec: FusedLinearSpec) -> WarpgroupGemm | None:
        """Return the kernel of a linear; None if it is too large for its offsets of 32 bits."""
        if 4 * layout.size(spec.linear()) >= _MOST_GROUP_BYTES:
            return None
        return WarpgroupGemm(stages=6 if spec.scheme == "f16" else 4)

    @staticmethod
    def most_rows(out_features: int) -> int:
        """Return the largest number of rows of x for which other kernels are faster."""
        across = -(-out_features // (GROUP_WARPS * ROWS))
        return max(64, GROUP_TOKENS * (-(-_FEW_GROUP_BLOCKS // across) - 1))


_GEMM = Gemm(row_tiles=2, token_tiles=8, warps=8, stages=4)
# Float16 weights use tiles with twice the tokens (`_WIDE_GEMM`), because the L1 cache bounds
# `_GEMM`: one multiplication loads 512 / 8 bytes of such weights and 16 of tokens, with
# `_WIDE_GEMM` 512 / 16 and 16. An H100 delivers about 24 bytes a clock to each multiprocessor; at
# half the speed of cuBLAS it multiplies 0.4 times a clock, so it loads 32 bytes or 19. With 8 bits
# `_GEMM` loads 20, with 4 bits 14: these schemes keep it, because the sums of twice the tokens have
# a price, too. The sums fill 128 registers of a lane, so the running totals move to shared memory,
# where the end of a slice takes up to 2,048 clocks (of 20,000 with K = 4,096, if no other warp
# multiplies meanwhile). Dequantizing 8 bits leaves no registers, and the last blocks have more
# padding. Eight warps are two a scheduler, which is enough: a warp multiplies eight times before it
# returns to the same sum (at six clocks or more, about 50), and a result takes some 33 clocks.
# While one warp waits for shared memory, the scheduler runs the other.
_WIDE_GEMM = Gemm(row_tiles=2, token_tiles=16, warps=8, stages=3, patch=16, shared_totals=True)


@dataclass(frozen=True, slots=True)
class TensorCoreLinearPlan:
    """Kernels of one linear, by the number of rows."""

    gemv: tuple[tuple[int, Gemv], ...]  # (largest number of rows, kernel), ascending
    gemm: Gemm  # kernel for more rows than `gemv` covers
    slices: int
    wide: tuple[int, Gemm] | None = None  # (number of rows, kernel for more rows than that)
    groups: tuple[int, WarpgroupGemm] | None = None  # the same, on GPUs that have warpgroups

    @staticmethod
    def of(
        spec: FusedLinearSpec, optin_bytes: int = 0, warpgroups: bool = False
    ) -> TensorCoreLinearPlan:
        """Return the kernels of the linear `spec` and their tile sizes.

        Args:
            spec: shapes and fused operations of the linear.
            optin_bytes: bytes of shared memory that a launch may request; every device has 48 KB.
            warpgroups: whether the device has `GpuLimits.warpgroups`.
        """
        row_tiles = 2 if spec.gated else 1  # one for the gate, one for the up projection
        slices = min(MOST_SLICES, spec.in_features // CHUNK)
        ahead = 8 // row_tiles  # limited so that two blocks share the registers of a multiprocessor
        eight = _eight_rows(spec, slices, Gemv(row_tiles, 1, ahead))
        one = _eight_rows(spec, slices, Gemv(row_tiles, 1, ahead, normed=True))
        gemv = (
            *([(1, one)] if one.can_norm(spec, slices) else []),
            (8, eight),
            (16, Gemv(row_tiles, 2)),
            (max(32, _GEMM.most_rows(spec.out_features)), Gemv(2, 4)),
        )
        groups = WarpgroupGemm.of(spec) if warpgroups else None
        if groups is not None:
            most = groups.most_rows(spec.out_features)
            rest = *gemv[:-1], (32, Gemv(2, 4)), (most, Gemv(2, 8))
            return TensorCoreLinearPlan(rest, _GEMM, slices, groups=(most, groups))
        wide = _wide(optin_bytes) if spec.scheme == "f16" else None
        if wide is None:
            return TensorCoreLinearPlan(gemv, _GEMM, slices)
        one_tile = _GEMM.token_tiles * TOKENS  # with fewer rows a wide tile would be half empty
        return TensorCoreLinearPlan(
            gemv, _GEMM, slices, (max(one_tile, wide.most_rows(spec.out_features)), wide)
        )


def _eight_rows(spec: FusedLinearSpec, slices: int, gemv: Gemv) -> Gemv:
    """Return the kernel for up to eight rows: `gemv`, or for integers a `StreamGemv` that fits.

    A chunk of float16 has four loads, which are enough in flight; and copies would fill shared
    memory.
    """
    if spec.scheme == "f16":
        return gemv
    small = chunk_bytes(spec.scheme) * gemv.row_tiles <= _SMALL_UNIT_BYTES // 2
    walk = min(_MOST_WALK, max(1, spec.out_features // (ROWS * gemv.row_tiles * _BLOCKS)))
    for stages in range(_MOST_STAGES, 1, -1):
        stream = StreamGemv(
            row_tiles=gemv.row_tiles,
            token_tiles=gemv.token_tiles,
            normed=gemv.normed,
            unit=2 if small else 1,
            stages=stages,
            walk=walk,
        )
        if stream.shared_bytes(spec, slices) <= _SHARED_BYTES:
            return stream
    return gemv


def _wide(optin_bytes: int) -> Gemm | None:
    """Return `_WIDE_GEMM` with the stages that fit (two on sm_80); None if fewer than two fit."""
    stages = min(
        _WIDE_GEMM.stages, (optin_bytes - _WIDE_GEMM.totals_bytes()) // _WIDE_GEMM.stage_bytes()
    )
    return replace(_WIDE_GEMM, stages=stages) if stages >= 2 else None
