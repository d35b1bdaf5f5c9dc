"""Output tile of a GEMM block: its rows of x and of the weight, and how both are loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from . import emit as e
from .linear_plan import LinearTiling, Operands, eight, epilogue, one
from .weights import GROUP, WORD, WORDS


@dataclass(frozen=True, slots=True)
class Share:
    """Operands of a GEMM, and the indices of one thread in one block."""

    plan: LinearTiling
    tensors: Operands
    m: Any  # number of rows of x
    block: Any  # index of the block along the columns
    tile: Any  # index of the tile along the rows
    thread: Any


class Tile(ABC):
    """Emits the code of one GEMM block: rows of x from `tile * rows`, columns of `block`."""

    def __init__(self, share: Share, shape: tuple[int, int, int]) -> None:
        """Initialize; `shape` is rows and columns of a tile, and the threads of a block.

        Columns of y are rows of the weight.
        """
        self.plan, self.tensors = share.plan, share.tensors
        self.rows, self.columns, self.threads = shape
        self.block, self.thread = share.block, share.thread
        self.m = T.Cast("int32", share.m)
        self.first_row = share.tile * self.rows

    @abstractmethod
    def emit(self) -> None:
        """Emit all sums, then the stores."""

    @abstractmethod
    def store_x(self, row: Any, k: Any, values: list[Any]) -> None:
        """Emit the stores of elements k, k + 1, ... of a group of x into shared memory."""

    @abstractmethod
    def store_w(self, k: Any, column: Any, values: list[Any]) -> None:
        """Emit the stores of elements k, k + 1, ... of a group of the weight into shared memory."""

    def dequantized(self, row: Any, word: Any) -> list[Any]:
        """Emit the load of eight elements of a row of the weight, unscaled, as `Weights.word`."""
        return self.tensors.weights.word(row, word)

    def weight_row(self, column: Any) -> Any:
        """Return the row of the weight for a column of the tile; the last row for padding.

        With a gate, the tile's left half has gate columns, its right half the up projection's.
        """
        spec = self.plan.spec
        if spec.gated:
            half = self.columns // 2
            own = T.min(self.block * half + column % half, spec.width - 1)
            return e.let(own + column // half * spec.width)
        return e.let(T.min(self.block * self.columns + column, spec.out_features - 1))

    @property
    def width(self) -> int:
        """Return how many columns of y the tile has."""
        return self.columns // (2 if self.plan.spec.gated else 1)

    def x_row(self, tile_row: Any) -> Any:
        """Return the row of x for a row of the tile; any row for padding."""
        return T.min(self.first_row + tile_row, self.m - 1)

    def put(self, tile_row: Any, column: Any, sums: list[Any]) -> None:
        """Emit the store of a tile row's result, unless the row is padding."""
        row = self.first_row + tile_row
        e.when(row < self.m, lambda: epilogue(self.plan, self.tensors, row, column, sums))

    def put_all(self, sums: Any, stride: int) -> None:
        """Emit the stores of all results, from sums in shared memory with rows `stride` apart."""
        spec = self.plan.spec

        def output(index: Any) -> None:
            row, own = e.let(e.div(index, self.width)), e.let(e.mod(index, self.width))
            column = e.let(self.block * self.width + own)
            at = e.let(row * stride + own)
            places = (at, at + self.width) if spec.gated else (at,)
            results = [e.let(sums[place]) for place in places]
            e.when(column < spec.width, lambda: self.put(row, column, results))

        e.over(self.rows * self.width, self.threads, self.thread, output)

    def load_x(self, group: Any) -> None:
        """Emit the copy of one group of columns of all rows of x, normalized, to shared memory."""
        plan, tensors = self.plan, self.tensors
        full_groups = tensors.weights.full_groups
        count = WORD if full_groups else 1  # elements that one load reads

        def load(index: Any) -> None:
            # visibly a multiple of `count`, which the vector load needs
            at = e.let(index % (GROUP // count)) * count
            tile_row = e.let(index // (GROUP // count))
            row = e.let(self.x_row(tile_row))
            inverse = None if plan.spec.norm_eps is None else e.let(tensors.inverse[row])
            k = group * GROUP + at
            values = (
                eight(plan, tensors, row, inverse, k)
                if full_groups
                else [one(plan, tensors, row, inverse, k)]
            )
            self.store_x(tile_row, at, values)

        e.over(self.rows * GROUP // count, self.threads, self.thread, load)

    def load_w(self, group: Any) -> None:
        """Emit the dequantization of a group of all columns into shared memory."""

        def load(index: Any) -> None:
            column, word = index % self.columns, index // self.columns
            row = self.weight_row(column)
            self.store_w(word * WORD, column, self.dequantized(row, group * WORDS + word))

        e.over(self.columns * WORDS, self.threads, self.thread, load)
