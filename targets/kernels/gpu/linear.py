"""y = x W^T from portable weights: a matrix-vector kernel for few rows, a tiled one for many.

A row has the same bits from both, because both add in one order, which K alone gives. The groups of
32 columns are dealt to `lanes`: group i to lane i mod lanes. Within a lane the columns are added in
ascending order, each by one fused multiply-add; then the lanes' sums in ascending order. Few rows:
a lane is a thread, so that neighbours read neighbouring groups. Many rows: a thread has some rows
and columns of a tile, and goes through the lanes one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ..specs import LinearSpec
from . import emit as e
from .limits import GpuLimits
from .weights import WORD, Weights, stored_shapes

GROUP = 32  # columns added by one lane before the next lane's
FEW_ROWS = 8  # up to so many, each row reads the weights for itself
MOST_LANES = 16
TILE_COLUMNS = 64
SIDE = 16  # threads along the columns of a tile
ROWS_A_THREAD = 2
COLUMNS_A_THREAD = TILE_COLUMNS // SIDE


@dataclass(frozen=True, slots=True)
class _Plan:
    spec: LinearSpec
    threads: int
    lanes: int
    groups: int

    @staticmethod
    def of(spec: LinearSpec, limits: GpuLimits) -> _Plan:
        groups = -(-spec.in_features // GROUP)
        lanes = 1
        while lanes < min(groups, MOST_LANES):
            lanes *= 2
        return _Plan(spec, min(256, limits.threads_per_block), lanes, groups)

    @property
    def columns(self) -> int:
        """Of a block with few rows."""
        return self.threads // self.lanes

    @property
    def tile_rows(self) -> int:
        """Of a block with many rows."""
        return ROWS_A_THREAD * self.threads // SIDE


def linear(spec: LinearSpec, limits: GpuLimits) -> PrimFunc:
    """(x float32 [m, K], *stored, y float32 [m, N])."""
    shapes, plan = stored_shapes(spec), _Plan.of(spec, limits)
    big_n, big_k = spec.out_features, spec.in_features

    if len(shapes) == 1:

        @T.prim_func(s_tir=True, private=True, check_well_formed=False)
        def float_linear(x: T.handle, w: T.handle, y: T.handle) -> None:
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
            m = T.int64()
            X = T.match_buffer(x, (m, big_k), "float32")
            W = T.match_buffer(w, shapes[0][0], shapes[0][1])
            Y = T.match_buffer(y, (m, big_n), "float32")
            _both(plan, X, Weights(spec, (W,)), Y, m)

        return float_linear

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def q4_linear(x: T.handle, words: T.handle, scales: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        m = T.int64()
        X = T.match_buffer(x, (m, big_k), "float32")
        W = T.match_buffer(words, shapes[0][0], shapes[0][1])
        S = T.match_buffer(scales, shapes[1][0], shapes[1][1])
        Y = T.match_buffer(y, (m, big_n), "float32")
        _both(plan, X, Weights(spec, (W, S)), Y, m)

    return q4_linear


def _both(plan: _Plan, X: Any, weights: Weights, Y: Any, m: Any) -> None:
    """Emit both kernels; the host chooses by the number of rows."""
    n = plan.spec.out_features

    def few() -> None:
        e.launch(
            (-(-n // plan.columns), m),
            plan.threads,
            lambda block, row, t: _few_rows(plan, X, weights, Y, block, row, t),
        )

    def many() -> None:
        e.launch(
            (-(-n // TILE_COLUMNS), (m + plan.tile_rows - 1) // plan.tile_rows),
            plan.threads,
            lambda block, rows, t: _many_rows(plan, X, weights, Y, block, rows, t, m),
        )

    e.either(m <= FEW_ROWS, few, many)


def _x(plan: _Plan, X: Any, row: Any, k: Any) -> Any:
    """X[row, k], 0 beyond K."""
    if plan.spec.in_features % GROUP == 0:
        return X[row, k]
    return T.if_then_else(k < plan.spec.in_features, X[row, k], T.float32(0))


def _few_rows(
    plan: _Plan, X: Any, weights: Weights, Y: Any, block: Any, row: Any, thread: Any
) -> None:
    """Emit a block of `columns` x `lanes` threads for one row."""
    n, lanes = plan.spec.out_features, plan.lanes
    lane, column = thread % lanes, e.let(block * plan.columns + thread // lanes)
    weight_row = e.let(T.min(column, n - 1))  # no branch around the barrier
    total, partial = e.private(1), e.shared((plan.threads,))
    T.buffer_store(total, T.float32(0), [0])

    def add_word(word: Any) -> None:
        for i, w in enumerate(weights.word(weight_row, word)):
            x = _x(plan, X, row, word * WORD + i)
            T.buffer_store(total, e.fma(x, w, total[0]), [0])

    def add_group(group: Any) -> None:
        with T.serial(GROUP // WORD) as word:
            add_word(group * (GROUP // WORD) + word)

    e.over(plan.groups, lanes, lane, add_group)
    T.buffer_store(partial, total[0], [thread])
    e.barrier()

    def store() -> None:
        T.buffer_store(total, T.float32(0), [0])
        with T.serial(lanes) as i:
            T.buffer_store(total, total[0] + partial[thread + i], [0])
        T.buffer_store(Y, total[0], [row, column])

    e.when(T.And(lane == 0, column < n), store)


def _many_rows(
    plan: _Plan, X: Any, weights: Weights, Y: Any, block: Any, rows: Any, thread: Any, m: Any
) -> None:
    """Emit a block that computes `tile_rows` x TILE_COLUMNS of Y."""
    first_row, first_column = rows * plan.tile_rows, block * TILE_COLUMNS
    size = ROWS_A_THREAD * COLUMNS_A_THREAD
    lane_sum, total = e.private(size), e.private(size)
    x_tile = e.shared((plan.tile_rows, GROUP))
    w_tile = e.shared((GROUP, TILE_COLUMNS))
    m32 = T.Cast("int32", m)
    for i in range(size):
        T.buffer_store(total, T.float32(0), [i])
    with T.serial(plan.lanes) as lane:
        for i in range(size):
            T.buffer_store(lane_sum, T.float32(0), [i])
        with T.serial((plan.groups - lane + plan.lanes - 1) // plan.lanes) as turn:
            group = e.let(lane + turn * plan.lanes)
            _load_x(plan, X, x_tile, first_row, group, thread, m32)
            _load_w(plan, weights, w_tile, first_column, group, thread)
            e.barrier()
            _multiply(x_tile, w_tile, lane_sum, thread)
            e.barrier()
        for i in range(size):
            T.buffer_store(total, total[i] + lane_sum[i], [i])
    _store_tile(plan, Y, total, first_row, first_column, thread, m32)


def _load_x(
    plan: _Plan, X: Any, tile: Any, first_row: Any, group: Any, thread: Any, m: Any
) -> None:
    def load(index: Any) -> None:
        k = index % GROUP
        row = T.min(first_row + index // GROUP, m - 1)
        T.buffer_store(tile, _x(plan, X, row, group * GROUP + k), [index // GROUP, k])

    e.over(plan.tile_rows * GROUP, plan.threads, thread, load)


def _load_w(
    plan: _Plan, weights: Weights, tile: Any, first_column: Any, group: Any, thread: Any
) -> None:
    words = GROUP // WORD

    def load(index: Any) -> None:
        column, word = index % TILE_COLUMNS, index // TILE_COLUMNS
        weight_row = e.let(T.min(first_column + column, plan.spec.out_features - 1))
        for i, w in enumerate(weights.word(weight_row, group * words + word)):
            T.buffer_store(tile, w, [word * WORD + i, column])

    e.over(TILE_COLUMNS * words, plan.threads, thread, load)


def _multiply(x_tile: Any, w_tile: Any, lane_sum: Any, thread: Any) -> None:
    with T.serial(GROUP) as k:
        for r in range(ROWS_A_THREAD):
            x = e.let(x_tile[thread // SIDE * ROWS_A_THREAD + r, k])
            for c in range(COLUMNS_A_THREAD):
                i = r * COLUMNS_A_THREAD + c
                w = w_tile[k, thread % SIDE + c * SIDE]
                T.buffer_store(lane_sum, e.fma(x, w, lane_sum[i]), [i])


def _store_tile(
    plan: _Plan, Y: Any, total: Any, first_row: Any, first_column: Any, thread: Any, m: Any
) -> None:
    for r in range(ROWS_A_THREAD):
        row = first_row + thread // SIDE * ROWS_A_THREAD + r
        for c in range(COLUMNS_A_THREAD):
            column = first_column + thread % SIDE + c * SIDE
            value = total[r * COLUMNS_A_THREAD + c]
            inside = T.And(row < m, column < plan.spec.out_features)
            with T.If(inside), T.Then():
                T.buffer_store(Y, value, [row, column])
