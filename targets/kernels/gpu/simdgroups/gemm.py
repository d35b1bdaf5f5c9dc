"""Tiled GEMM by SIMD-group matrices: tiles in shared memory, multiplied 8 x 8 at a time.

x and the dequantized weights are float32 in shared memory: a weight of 4 or 8 bits times a float16
scale is exact, so this kernel rounds only where other kernels round, too. Groups of 32 columns are
added in ascending order.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from .. import emit as e
from ..gemm import launch_inverses
from ..linear_plan import LinearTiling, Operands
from ..tile import Share, Tile
from ..weights import GROUP
from .intrinsics import MatrixRegisters
from .plan import LANES, SIDE, Matrices, tiles


def launch_gemm(plan: LinearTiling, tensors: Operands, m: Any) -> None:
    """Emit GEMM kernels of two tile sizes, and before them a kernel for the rows' norms.

    The host chooses the tile by the number of rows.
    """
    launch_inverses(plan, tensors, m)
    most, small, large = tiles(plan.spec)
    e.choose(
        m <= most,
        lambda: _launch(plan, tensors, m, small),
        lambda: _launch(plan, tensors, m, large),
    )


def _launch(plan: LinearTiling, tensors: Operands, m: Any, cut: Matrices) -> None:
    rows, columns, threads = cut.shape
    e.launch(
        (-(-plan.spec.out_features // columns), (m + rows - 1) // rows),
        threads,
        lambda *place: MatrixTile(Share(plan, tensors, m, *place), cut).emit(),
    )


class MatrixTile(Tile):
    """A GEMM tile whose SIMD groups have several matrices of sums each."""

    def __init__(self, share: Share, cut: Matrices) -> None:
        super().__init__(share, cut.shape)
        self.cut = cut
        self.memory = e.shared((cut.floats,))
        own = e.let(e.div(share.thread, LANES))
        down, across = cut.own
        self.row = e.let(e.div(own, cut.across) * (down * SIDE))
        self.column = e.let(e.mod(own, cut.across) * (across * SIDE))

    def emit(self) -> None:
        """Emit the loop over all groups of columns, then the stores."""
        down, across = self.cut.own
        sums = MatrixRegisters(down * across)
        xs, ws = MatrixRegisters(down), MatrixRegisters(across)
        sums.clear()
        with T.serial(self.plan.groups) as group:
            self.load_x(group)
            self.load_w(group)
            e.barrier()
            with T.serial(GROUP // SIDE) as step:
                self._multiply(sums, xs, ws, step * SIDE)
            e.barrier()
        self._store(sums)

    def store_x(self, row: Any, k: Any, values: list[Any]) -> None:
        """Emit the stores of elements k, k + 1, ... of a row of x into shared memory."""
        for i, value in enumerate(values):
            T.buffer_store(self.memory, value, [row * self.cut.x_stride + k + i])

    def store_w(self, k: Any, column: Any, values: list[Any]) -> None:
        """Emit the stores of elements k, k + 1, ... of a weight row into shared memory."""
        for i, value in enumerate(values):
            at = self.cut.w_at + (k + i) * self.cut.w_stride + column
            T.buffer_store(self.memory, value, [at])

    def dequantized(self, row: Any, word: Any) -> list[Any]:
        """Emit the load of eight elements of a weight row, multiplied by their scale.

        The portable GEMM multiplies sums by the scale instead.
        """
        return self.tensors.weights.dequantized(row, word)

    def _multiply(self, sums: MatrixRegisters, xs: Any, ws: Any, k: Any) -> None:
        cut = self.cut
        for i in range(xs.count):
            at = (self.row + i * SIDE) * cut.x_stride + k
            xs.load(i, self.memory, at, cut.x_stride)
        for j in range(ws.count):
            at = cut.w_at + k * cut.w_stride + self.column + j * SIDE
            ws.load(j, self.memory, at, cut.w_stride)
        for i in range(xs.count):
            for j in range(ws.count):
                sums.multiply(i * ws.count + j, xs, i, ws, j)

    def _store(self, sums: MatrixRegisters) -> None:
        cut = self.cut
        down, across = cut.own
        for i in range(down):
            for j in range(across):
                at = (self.row + i * SIDE) * cut.w_stride + self.column + j * SIDE
                sums.store(i * across + j, self.memory, at, cut.w_stride)
        e.barrier()
        self.put_all(self.memory, cut.w_stride)
