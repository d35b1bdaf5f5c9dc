"""Matrix times many vectors: tiles in shared memory; a thread goes through the lanes in turn."""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T

from . import emit as e
from .linear_plan import Operands, Plan, eight, finish, inverses_of, one
from .weights import GROUP, WORD, WORDS

TILE_COLUMNS = 64  # rows of the weight
SIDE = 16  # threads along the columns of a tile
ROWS_A_THREAD = 4
COLUMNS_A_THREAD = TILE_COLUMNS // SIDE
SIZE = ROWS_A_THREAD * COLUMNS_A_THREAD


def launch_many_rows(plan: Plan, tensors: Operands, m: Any) -> None:
    """Emit the kernel, and before it one for the rows' norms."""
    threads = min(256, plan.limits.threads_per_block)
    rows = ROWS_A_THREAD * threads // SIDE
    if plan.spec.norm_eps is not None:
        e.launch((m,), plan.few_threads, lambda row, t: _store_inverse(plan, tensors, row, t))
    e.launch(
        (-(-plan.spec.out_features // TILE_COLUMNS), (m + rows - 1) // rows),
        threads,
        lambda block, tile, t: Tile(plan, tensors, m, rows, threads, block, tile, t).emit(),
    )


def _store_inverse(plan: Plan, tensors: Operands, row: Any, thread: Any) -> None:
    (value,) = inverses_of(plan, tensors.x, [row], thread)
    e.when(thread == 0, lambda: T.buffer_store(tensors.inverse, value, [row]))


class Tile:
    """Emits the code of one block: rows of x from `tile * rows` on, columns of `block`."""

    def __init__(
        self,
        plan: Plan,
        tensors: Operands,
        m: Any,
        rows: int,
        threads: int,
        block: Any,
        tile: Any,
        thread: Any,
    ) -> None:
        self.plan, self.tensors, self.rows, self.threads = plan, tensors, rows, threads
        self.block, self.thread = block, thread
        self.m = T.Cast("int32", m)
        self.first_row = tile * rows
        self.x = e.shared((rows, GROUP))
        self.w = e.shared((GROUP, TILE_COLUMNS))
        self.scaled = tensors.weights.has_scales

    def emit(self) -> None:
        """All groups, lane after lane, then the stores."""
        plan = self.plan
        group_sum, lane_sum, total = (e.private(SIZE) for _ in range(3))
        into = group_sum if self.scaled else lane_sum
        _clear(total)
        with T.serial(plan.lanes) as lane:
            _clear(lane_sum)
            with T.serial((plan.groups - lane + plan.lanes - 1) // plan.lanes) as turn:
                group = e.let(lane + turn * plan.lanes)
                self._load_x(group)
                self._load_w(group)
                e.barrier()
                if self.scaled:
                    _clear(group_sum)
                self._multiply(into)
                if self.scaled:
                    self._scale(group, group_sum, lane_sum)
                e.barrier()
            for i in range(SIZE):
                T.buffer_store(total, total[i] + lane_sum[i], [i])
        self._store(total)

    def _weight_row(self, column: Any) -> Any:
        """Of a column of the tile; the last where there is none.

        Of a gated linear, the tile's left half has gates, its right half what they are for.
        """
        spec = self.plan.spec
        if spec.gated:
            half = TILE_COLUMNS // 2
            own = T.min(self.block * half + column % half, spec.width - 1)
            return e.let(own + column // half * spec.width)
        return e.let(T.min(self.block * TILE_COLUMNS + column, spec.out_features - 1))

    def x_row(self, tile_row: Any) -> Any:
        """Row of x for one of the tile; some row where there is none."""
        return T.min(self.first_row + tile_row, self.m - 1)

    def put(self, tile_row: Any, column: Any, sums: list[Any]) -> None:
        """Emit the store of the result of a row of the tile, if there is one."""
        row = self.first_row + tile_row
        e.when(row < self.m, lambda: finish(self.plan, self.tensors, row, column, sums))

    def _load_x(self, group: Any) -> None:
        plan, tensors = self.plan, self.tensors
        whole = tensors.weights.whole_groups
        count = WORD if whole else 1  # elements at a time

        def load(index: Any) -> None:
            at = e.let(index % (GROUP // count)) * count  # a multiple that `vector` can see
            tile_row = e.let(index // (GROUP // count))
            row = e.let(self.x_row(tile_row))
            inverse = None if plan.spec.norm_eps is None else e.let(tensors.inverse[row])
            k = group * GROUP + at
            values = (
                eight(plan, tensors, row, inverse, k)
                if whole
                else [one(plan, tensors, row, inverse, k)]
            )
            for i, value in enumerate(values):
                T.buffer_store(self.x, value, [tile_row, at + i])

        e.over(self.rows * GROUP // count, self.threads, self.thread, load)

    def _load_w(self, group: Any) -> None:
        def load(index: Any) -> None:
            column, word = index % TILE_COLUMNS, index // TILE_COLUMNS
            row = self._weight_row(column)
            for i, w in enumerate(self.tensors.weights.word(row, group * WORDS + word)):
                T.buffer_store(self.w, w, [word * WORD + i, column])

        e.over(TILE_COLUMNS * WORDS, self.threads, self.thread, load)

    def _multiply(self, into: Any) -> None:
        with T.serial(GROUP) as k:
            ws = [e.let(self.w[k, self._column(c)]) for c in range(COLUMNS_A_THREAD)]
            for r in range(ROWS_A_THREAD):
                x = e.let(self.x[self._row(r), k])
                for c, w in enumerate(ws):
                    i = r * COLUMNS_A_THREAD + c
                    T.buffer_store(into, e.fma(x, w, into[i]), [i])

    def _scale(self, group: Any, group_sum: Any, lane_sum: Any) -> None:
        for c in range(COLUMNS_A_THREAD):
            scale = self.tensors.weights.scale(self._weight_row(self._column(c)), group)
            for r in range(ROWS_A_THREAD):
                i = r * COLUMNS_A_THREAD + c
                T.buffer_store(lane_sum, e.fma(group_sum[i], scale, lane_sum[i]), [i])

    def _row(self, r: int) -> Any:
        return self.thread // SIDE * ROWS_A_THREAD + r

    def _column(self, c: int) -> Any:
        return self.thread % SIDE + c * SIDE

    def _store(self, total: Any) -> None:
        spec = self.plan.spec
        pairs = COLUMNS_A_THREAD // 2
        for r in range(ROWS_A_THREAD):
            at = r * COLUMNS_A_THREAD
            for c in range(pairs if spec.gated else COLUMNS_A_THREAD):
                width = TILE_COLUMNS // (2 if spec.gated else 1)
                column = e.let(self.block * width + self._column(c))
                sums = [total[at + c], total[at + pairs + c]] if spec.gated else [total[at + c]]
                row = self._row(r)
                e.when(column < spec.width, partial(self.put, row, column, sums))


def _clear(sums: Any) -> None:
    for i in range(SIZE):
        T.buffer_store(sums, T.float32(0), [i])
