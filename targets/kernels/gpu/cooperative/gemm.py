"""Tiled GEMM by cooperative matrices: tiles of x and of weights are staged in shared memory.

Both are float16 in shared memory; products are exact and sums float32. Groups of 32 columns are
added in ascending order. The device chooses the order inside a group.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from .. import emit as e
from ..gemm import launch_inverses
from ..linear_plan import LinearTiling, Operands
from ..tile import Share, Tile
from ..weights import GROUP, WORD, WORDS
from . import intrinsics

# float16 between rows in shared memory: the padding puts neighbours into different banks
_STRIDE = GROUP + 8
_SUMS_STRIDE = intrinsics.COLUMNS + 4
_LARGEST_HALF = 65504.0
SHAPE = intrinsics.ROWS, intrinsics.COLUMNS, intrinsics.THREADS


def launch_gemm(plan: LinearTiling, tensors: Operands, m: Any) -> None:
    """Emit the GEMM kernel, and before it a kernel for the rows' norms if x is normalized."""
    launch_inverses(plan, tensors, m)
    e.launch(
        (
            -(-plan.spec.out_features // intrinsics.COLUMNS),
            (m + intrinsics.ROWS - 1) // intrinsics.ROWS,
        ),
        intrinsics.THREADS,
        lambda *place: CooperativeTile(Share(plan, tensors, m, *place), SHAPE).emit(),
    )


class CooperativeTile(Tile):
    """A GEMM tile whose sums the block's threads share; the device assigns sums to threads."""

    def __init__(self, share: Share, shape: tuple[int, int, int]) -> None:
        super().__init__(share, shape)
        self.x = e.shared((self.rows * _STRIDE,), "float16")
        self.w = e.shared((self.columns * _STRIDE,), "float16")
        self.sums = e.shared((self.rows * _SUMS_STRIDE,))
        spec = share.plan.spec
        self.exact = spec.x_dtype == "float16" and spec.norm_eps is None

    def emit(self) -> None:
        """Emit the loop over all groups of columns, then the stores."""
        intrinsics.begin(self.thread)
        with T.serial(self.plan.groups) as group:
            self.load_x(group)
            self.load_w(group)
            e.barrier()
            intrinsics.multiply(self.thread, self.x, self.w, _STRIDE, GROUP)
            e.barrier()
        self._store()

    def store_x(self, row: Any, k: Any, values: list[Any]) -> None:
        """Emit the stores of `values` into a row of x from k on, in shared memory, as float16."""
        self._store_values(self.x, row, k, values if self.exact else [_bounded(v) for v in values])

    def store_w(self, k: Any, column: Any, values: list[Any]) -> None:
        """Emit the stores of `values` into a weight row from k on, as float16, in shared memory."""
        self._store_values(self.w, column, k, values)

    def dequantized(self, row: Any, word: Any) -> list[Any]:
        """Emit the load of eight elements of a weight row, multiplied by their scale."""
        return self.tensors.weights.dequantized(row, word)

    def load_w(self, group: Any) -> None:
        """Emit the dequantization of a group of weight columns into shared memory.

        Neighbouring threads dequantize neighbouring words of a row.
        """

        def load(index: Any) -> None:
            column, word = e.let(e.div(index, WORDS)), e.let(e.mod(index, WORDS))
            row = self.weight_row(column)
            self.store_w(word * WORD, column, self.dequantized(row, group * WORDS + word))

        e.over(self.columns * WORDS, self.threads, self.thread, load)

    def _store_values(self, into: Any, row: Any, k: Any, values: list[Any]) -> None:
        at = e.let(row * _STRIDE + k)
        for i, value in enumerate(values):
            T.buffer_store(into, T.Cast("float16", value), [at + i])

    def _store(self) -> None:
        intrinsics.store(self.thread, self.sums, _SUMS_STRIDE)
        e.barrier()
        self.put_all(self.sums, _SUMS_STRIDE)


def _bounded(value: Any) -> Any:
    """Emit a clamp to float16's finite range: an infinity would make the whole row NaN."""
    return T.max(T.min(value, T.float32(_LARGEST_HALF)), T.float32(-_LARGEST_HALF))
