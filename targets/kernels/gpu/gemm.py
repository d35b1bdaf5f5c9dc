"""Tiled GEMM with shared memory, for prefill: a thread computes the lanes of `linear` in turn."""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T

from . import emit as e
from .limits import GpuLimits
from .linear_plan import LinearTiling, Operands, inverses_of
from .tile import Share, Tile
from .weights import GROUP

TILE_COLUMNS = 64  # columns of y in a tile, which are rows of the weight
SIDE = 16  # threads along the columns of a tile
ROWS_A_THREAD = 4
COLUMNS_A_THREAD = TILE_COLUMNS // SIDE
SIZE = ROWS_A_THREAD * COLUMNS_A_THREAD


def launch_gemm(plan: LinearTiling, tensors: Operands, m: Any) -> None:
    """Emit the GEMM kernel, and before it a kernel for the rows' norms if x is normalized."""
    launch_inverses(plan, tensors, m)
    shape = shape_for(plan.limits)
    rows, _, threads = shape
    e.launch(
        (-(-plan.spec.out_features // TILE_COLUMNS), (m + rows - 1) // rows),
        threads,
        lambda *place: ThreadTile(Share(plan, tensors, m, *place), shape).emit(),
    )


def shape_for(limits: GpuLimits) -> tuple[int, int, int]:
    """Return rows and columns of a tile, and the threads of its block."""
    threads = min(256, limits.threads_per_block)
    return ROWS_A_THREAD * threads // SIDE, TILE_COLUMNS, threads


def launch_inverses(plan: LinearTiling, tensors: Operands, m: Any) -> None:
    """Emit the kernel that computes the rows' norms, if the linear has a fused norm."""

    def block(row: Any, thread: Any) -> None:
        (value,) = inverses_of(plan, tensors.x, [row], thread)
        e.when(thread == 0, lambda: T.buffer_store(tensors.inverse, value, [row]))

    if plan.spec.norm_eps is not None:
        e.launch((m,), plan.gemv_threads, block)


class ThreadTile(Tile):
    """A GEMM tile whose threads compute several rows and columns each."""

    def __init__(self, share: Share, shape: tuple[int, int, int]) -> None:
        super().__init__(share, shape)
        self.x = e.shared((self.rows, GROUP))
        self.w = e.shared((GROUP, TILE_COLUMNS))
        self.scaled = share.tensors.weights.has_scales

    def emit(self) -> None:
        """Emit the loop over all groups, lane after lane, then the stores."""
        plan = self.plan
        group_sum, lane_sum, total = (e.private(SIZE) for _ in range(3))
        into = group_sum if self.scaled else lane_sum
        _clear(total)
        with T.serial(plan.lanes) as lane:
            _clear(lane_sum)
            with T.serial((plan.groups - lane + plan.lanes - 1) // plan.lanes) as turn:
                group = e.let(lane + turn * plan.lanes)
                self.load_x(group)
                self.load_w(group)
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

    def store_x(self, row: Any, k: Any, values: list[Any]) -> None:
        """Emit the stores of elements k, k + 1, ... of a row of x into shared memory."""
        for i, value in enumerate(values):
            T.buffer_store(self.x, value, [row, k + i])

    def store_w(self, k: Any, column: Any, values: list[Any]) -> None:
        """Emit the stores of elements k, k + 1, ... of a weight row into shared memory."""
        for i, value in enumerate(values):
            T.buffer_store(self.w, value, [k + i, column])

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
            scale = self.tensors.weights.scale(self.weight_row(self._column(c)), group)
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
                column = e.let(self.block * self.width + self._column(c))
                sums = [total[at + c], total[at + pairs + c]] if spec.gated else [total[at + c]]
                row = self._row(r)
                e.when(column < spec.width, partial(self.put, row, column, sums))


def _clear(sums: Any) -> None:
    for i in range(SIZE):
        T.buffer_store(sums, T.float32(0), [i])
