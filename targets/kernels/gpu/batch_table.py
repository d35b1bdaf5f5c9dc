"""Positions and pages of rows: from the batch's arrays, or from one table that combines them.

The table, `batch_table`, is computed once a step for all layers: a kernel binds one tensor instead
of five, and devices can bind few. Of n rows, p page ids and w slots (see `splits`) it has 3n + p +
w int32:

- [3i] the position of row i; [3i + 1] the index, in the table, of the first page of its sequence;
  [3i + 2] its first slot if it is its sequence's only row, and there are slots for all; else -1
- [3n ..] the page ids
- [3n + p ..] for each slot, the row whose split has it; -1: none

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tvm.script import tirx as T

from wherry.ops import BatchTableSpec

from ..kernel_set import FusedKernel
from . import emit as e
from .limits import GpuLimits
from .splits import SPLIT, needed, pages_of, slots

ROW = 3  # int32 of each row


class BatchRows(Protocol):
    """Interface: positions and pages of the batch's rows; all values are int32."""

    def position(self, row: Any) -> Any:
        """Return the position of the row in its sequence."""

    def first(self, row: Any) -> Any:
        """Return the first argument of `page` for the row's sequence.

        It differs between sequences.
        """

    def page(self, first: Any, index: Any) -> Any:
        """Return page number `index` of the sequence with this `first`."""

    def slot(self, row: Any) -> Any:
        """Return the first split-K slot of a row; -1: the row has none."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """`BatchRows` over the arrays of a step, see docs/design/compiled-library.md."""

    positions: Any
    sequences: Any
    page_indptr: Any
    page_ids: Any

    def position(self, row: Any) -> Any:
        """Return the position of the row in its sequence."""
        return self.positions[row]

    def first(self, row: Any) -> Any:
        """Return the index in `page_ids` of the first page of the row's sequence."""
        return self.page_indptr[self.sequences[row]]

    def page(self, first: Any, index: Any) -> Any:
        """Return page number `index` of the sequence with this `first`."""
        return self.page_ids[first + index]

    def slot(self, row: Any) -> Any:
        """Return -1: without a batch table no row has split-K slots."""
        return T.int32(-1)


@dataclass(frozen=True, slots=True)
class Table:
    """`BatchRows` over the batch table, which combines a step's arrays."""

    table: Any  # int32 [3n + p + w]

    def position(self, row: Any) -> Any:
        """Return the position of the row in its sequence."""
        return self.table[row * ROW]

    def first(self, row: Any) -> Any:
        """Return the index in the table of the first page of the row's sequence."""
        return self.table[row * ROW + 1]

    def page(self, first: Any, index: Any) -> Any:
        """Return page number `index` of the sequence with this `first`."""
        return self.table[first + index]

    def slot(self, row: Any) -> Any:
        """Return the first split-K slot of a row; -1: the row has none."""
        return self.table[row * ROW + 2]

    def row(self, count: Any, slot: Any) -> Any:
        """Return the row whose split has the slot number `slot` of `count`; -1: none."""
        return self.table[T.Cast("int32", self.table.shape[0] - count) + slot]


@dataclass(frozen=True, slots=True)
class AllRows(Table):
    """The batch table for a kernel that computes all rows, including rows with split-K slots."""

    def slot(self, row: Any) -> Any:
        """Return -1, so that no row is skipped."""
        return T.int32(-1)


def element(pages: Any, page: Any, which: int, kv_head: Any, token: Any, k: Any) -> tuple[Any, ...]:
    """Return the index of an element of a token's key (0) or value (1), in its page.

    Pages have the shape [P, 2, g, size, e]; in pages of one plane [P, 1, g, size, e] the key is the
    value, too. All pages together may exceed 32-bit indices, but one page does not: only the page
    index has 64 bits, and the place in the page is one number. A multiple of four in k stays
    visible to the device's compiler.
    """
    _, planes, g, size, e_ = (d if i == 0 else int(d) for i, d in enumerate(pages.shape))
    line = e.let((min(which, planes - 1) * g + kv_head) * size + token)
    return T.Cast("int64", page), 0, 0, 0, line * e_ + k


def batch_table(spec: BatchTableSpec, limits: GpuLimits) -> FusedKernel:
    """Return the kernel that computes the batch table.

    (positions [n], sequences [n], query_indptr, page_indptr [r + 1], page_ids [p], table)
    """
    threads = min(128, limits.threads_per_block)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        emitter = _Emitter(spec, b, sizes)
        n, p = sizes["n"], sizes["p"]

        def store(block: Any, thread: Any) -> None:
            i = e.let(block * threads + thread)
            e.when(i < emitter.rows, lambda: emitter.row(i))
            e.when(i < emitter.pages, lambda: emitter.page(i))

        e.launch(((n + p + threads - 1) // threads,), threads, store)

    func = e.prim_func(
        [
            ("positions", ("n",), "int32"),
            ("sequences", ("n",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            ("page_indptr", ("r2",), "int32"),
            ("page_ids", ("p",), "int32"),
            ("table", ("t",), "int32"),
        ],
        emit,
    )

    def size(of: Any) -> Any:
        return ROW * of["n"] + of["p"] + slots(spec.page_size, of)

    return FusedKernel(compute=func, scratch=(((size,), "int32"),))


class _Emitter:
    """Emits the stores of one thread into the batch table."""

    def __init__(
        self, spec: BatchTableSpec, buffers: dict[str, Any], sizes: dict[str, Any]
    ) -> None:
        self.b, self.table, self.split = buffers, buffers["table"], pages_of(spec.page_size)
        n, p, r = sizes["n"], sizes["p"], sizes["r1"] - 1
        self.rows, self.pages = T.Cast("int32", n), T.Cast("int32", p)
        self.slots = T.Cast("int32", ROW * n + p)  # index in the table where the slots begin
        self.enough = needed(spec.page_size, p, r) <= sizes["t"] - ROW * n - p

    def page(self, i: Any) -> None:
        """Emit the store of page id i."""
        T.buffer_store(self.table, self.b["page_ids"][i], [self.rows * ROW + i])

    def row(self, i: Any) -> None:
        """Emit the numbers of row i, and the slots of its sequence if the row is its first."""
        b = self.b
        sequence, position = e.let(b["sequences"][i]), e.let(b["positions"][i])
        page, after = (e.let(b["page_indptr"][sequence + k]) for k in (0, 1))
        begin, end = (e.let(b["query_indptr"][sequence + k]) for k in (0, 1))
        alone = end - begin == 1
        slot = e.let(page // self.split + sequence)
        own = e.let(T.if_then_else(T.And(alone, self.enough), slot, -1))
        numbers = (position, page + self.rows * ROW, own)
        for k, value in enumerate(numbers):
            T.buffer_store(self.table, value, [i * ROW + k])

        def fill() -> None:
            with T.serial(after // self.split + sequence + 1 - slot) as j:
                used = T.And(alone, j * SPLIT <= position)
                row = T.if_then_else(used, i, -1)
                T.buffer_store(self.table, row, [self.slots + slot + j])

        e.when(T.And(i == begin, self.enough), fill)
