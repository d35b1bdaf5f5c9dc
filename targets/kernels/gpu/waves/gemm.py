"""Tiled GEMM by the matrix units of AMD's GPUs: tiles in shared memory, 16 x 16 at a time.

x and the dequantized weights are float16 in shared memory; products are exact and sums float32.
Groups of 16 columns are added in ascending order.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T

from .. import emit as e
from ..gemm import launch_inverses
from ..linear_plan import LinearTiling, Operands
from ..tile import Share, Tile
from ..weights import GROUP
from .units import SIDE, UNITS, MatrixUnit

ROWS = COLUMNS = 64  # rows and columns of a tile
DOWN = ACROSS = 2  # waves along the rows and along the columns of a tile
# matrices of a wave along rows and columns
_OWN_ROWS, _OWN_COLUMNS = ROWS // DOWN // SIDE, COLUMNS // ACROSS // SIDE
# float16 between rows in shared memory: the padding puts neighbours into different banks
_STRIDE = GROUP + 8
_VECTOR = 4  # elements that a lane reads at once


def launch_gemm(plan: LinearTiling, tensors: Operands, m: Any) -> None:
    """Emit the GEMM kernel, and before it a kernel for the rows' norms if x is normalized."""
    assert plan.limits.wave_matrices is not None
    launch(plan, tensors, m, UNITS[plan.limits.wave_matrices])


def launch(plan: LinearTiling, tensors: Operands, m: Any, unit: MatrixUnit) -> None:
    """Emit the GEMM kernels of `launch_gemm` for the matrix unit `unit`."""
    launch_inverses(plan, tensors, m)
    shape = ROWS, COLUMNS, unit.lanes * DOWN * ACROSS
    e.launch(
        (-(-plan.spec.out_features // COLUMNS), (m + ROWS - 1) // ROWS),
        shape[-1],
        lambda *place: WaveTile(Share(plan, tensors, m, *place), shape, unit).emit(),
    )


class WaveTile(Tile):
    """A GEMM tile whose waves have several matrices of sums.

    With a gate, a wave has the gate's and the up projection's half of each result.
    """

    def __init__(self, share: Share, shape: tuple[int, int, int], unit: MatrixUnit) -> None:
        super().__init__(share, shape)
        self.unit = unit
        self.x = e.shared((ROWS, _STRIDE), "float16")
        self.w = e.shared((COLUMNS, _STRIDE), "float16")
        thread = share.thread
        wave, self.lane = e.let(e.div(thread, unit.lanes)), e.let(e.mod(thread, unit.lanes))
        self.row = e.let(e.div(wave, ACROSS) * (_OWN_ROWS * SIDE))
        self.column = e.let(e.mod(wave, ACROSS) * SIDE)

    def emit(self) -> None:
        """Emit the loop over all groups of columns, then the stores."""
        unit = self.unit
        size = _OWN_ROWS * _OWN_COLUMNS * unit.sums
        sums = e.private(size)
        a = e.private(_OWN_ROWS * unit.own, "float16")
        b = e.private(_OWN_COLUMNS * unit.own, "float16")
        for i in range(size):
            T.buffer_store(sums, T.float32(0), [i])
        with T.serial(self.plan.groups) as group:
            self.load_x(group)
            self.load_w(group)
            e.barrier()
            for k in range(0, GROUP, SIDE):
                self._multiply(sums, a, b, k)
            e.barrier()
        self._store(sums)

    def store_x(self, row: Any, k: Any, values: list[Any]) -> None:
        """Emit the stores of `values` into a row of x from k on, in shared memory, as float16."""
        self._store_values(self.x, row, k, [e.rounded("float16", value) for value in values])

    def store_w(self, k: Any, column: Any, values: list[Any]) -> None:
        """Emit the stores of `values` into a weight row from k on, as float16, in shared memory."""
        self._store_values(self.w, column, k, values)

    def _store_values(self, into: Any, row: Any, k: Any, values: list[Any]) -> None:
        """Emit vector stores of float16 values: LLVM would not combine all scalar stores."""
        halves = e.private(len(values), "float16")
        for i, value in enumerate(values):
            T.buffer_store(halves, T.Cast("float16", value), [i])
        for i in range(0, len(values), _VECTOR):
            T.buffer_store(into, halves[T.ramp(i, 1, _VECTOR)], [row, T.ramp(k + i, 1, _VECTOR)])

    def dequantized(self, row: Any, word: Any) -> list[Any]:
        """Emit the load of eight elements of a weight row, multiplied by their scale."""
        return self.tensors.weights.dequantized(row, word)

    def _matrix_column(self, j: int) -> Any:
        """Return the first column of the wave's matrix j.

        Gate columns are in the tile's left half.
        """
        return self.column + j * (ACROSS * SIDE)

    def _multiply(self, sums: Any, a: Any, b: Any, k: int) -> None:
        unit = self.unit
        first = e.let(unit.first_k(self.lane) + k)
        line = e.let(e.mod(self.lane, SIDE))

        def load(into: Any, at: int, source: Any, row: Any) -> None:
            for i in range(0, unit.own, _VECTOR):
                value = source[row, T.ramp(first + i, 1, _VECTOR)]
                T.buffer_store(into, value, [T.ramp(at + i, 1, _VECTOR)])

        for i in range(_OWN_ROWS):
            load(a, i * unit.own, self.x, self.row + i * SIDE + line)
        for j in range(_OWN_COLUMNS):
            load(b, j * unit.own, self.w, self._matrix_column(j) + line)
        for i in range(_OWN_ROWS):
            for j in range(_OWN_COLUMNS):
                at = (i * _OWN_COLUMNS + j) * unit.sums
                unit.multiply(sums, at, a, i * unit.own, b, j * unit.own)

    def _store(self, sums: Any) -> None:
        unit, spec = self.unit, self.plan.spec
        pairs = _OWN_COLUMNS // 2 if spec.gated else _OWN_COLUMNS
        for i in range(_OWN_ROWS):
            for j in range(pairs):
                own = self._matrix_column(j) + e.mod(self.lane, SIDE)
                column = e.let(self.block * self.width + own)
                places = (j, j + pairs) if spec.gated else (j,)
                for r in range(unit.sums):
                    row = e.let(self.row + i * SIDE + unit.row(self.lane, r))
                    at = [(i * _OWN_COLUMNS + p) * unit.sums + r for p in places]
                    put = partial(self.put, row, column, [sums[place] for place in at])
                    e.when(column < spec.width, put)
