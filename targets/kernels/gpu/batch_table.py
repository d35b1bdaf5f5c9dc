"""Where each row's position and pages are: the batch's own arrays, or one array made of them.

The one array, `batch_table`, is made once a step for all layers: a kernel that reads it takes one
tensor where it would take four, and devices bind few. Of n rows and p page ids it has 2n + p int32:
[2i] the position of row i, [2i + 1] the index, in the table, of the first page of its sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from . import emit as e
from .limits import GpuLimits


class Rows(Protocol):
    """What a kernel asks about the rows of the batch; all int32."""

    def position(self, row: Any) -> Any:
        """Of the row in its sequence."""

    def first(self, row: Any) -> Any:
        """What `page` wants to know of the row's sequence; differs between sequences."""

    def page(self, first: Any, index: Any) -> Any:
        """The sequence's page `index`."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """The arrays of a step, see ARCHITECTURE.md."""

    positions: Any
    sequences: Any
    page_indptr: Any
    page_ids: Any

    def position(self, row: Any) -> Any:
        """See `Rows`."""
        return self.positions[row]

    def first(self, row: Any) -> Any:
        """See `Rows`."""
        return self.page_indptr[self.sequences[row]]

    def page(self, first: Any, index: Any) -> Any:
        """See `Rows`."""
        return self.page_ids[first + index]


@dataclass(frozen=True, slots=True)
class Table:
    """The one array."""

    table: Any  # int32 [2n + p]

    def position(self, row: Any) -> Any:
        """See `Rows`."""
        return self.table[row * 2]

    def first(self, row: Any) -> Any:
        """See `Rows`."""
        return self.table[row * 2 + 1]

    def page(self, first: Any, index: Any) -> Any:
        """See `Rows`."""
        return self.table[first + index]


def element(pages: Any, page: Any, which: int, kv_head: Any, token: Any, k: Any) -> tuple[Any, ...]:
    """Index of an element of the key (0) or value (1) of a token, in pages [P, 2, g, size, e].

    All pages together may have more elements than 32 bits count, one has not: 64 bits are for the
    page alone, and the place in it is written as one number. A multiple of four in k stays visible.
    """
    _, _, g, size, e_ = (d if i == 0 else int(d) for i, d in enumerate(pages.shape))
    line = e.let((which * g + kv_head) * size + token)
    return T.Cast("int64", page), 0, 0, 0, line * e_ + k


def batch_table(limits: GpuLimits) -> PrimFunc:
    """(positions [n], sequences [n], page_indptr [r + 1], page_ids [p], table [t]); t = 2n + p."""
    threads = min(128, limits.threads_per_block)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        n, p = sizes["n"], sizes["p"]
        n32, p32 = T.Cast("int32", n), T.Cast("int32", p)
        rows = Arrays(b["positions"], b["sequences"], b["page_indptr"], b["page_ids"])

        def store(block: Any, thread: Any) -> None:
            i = e.let(block * threads + thread)

            def row() -> None:
                T.buffer_store(b["table"], rows.position(i), [i * 2])
                T.buffer_store(b["table"], rows.first(i) + n32 * 2, [i * 2 + 1])

            e.when(i < n32, row)
            e.when(i < p32, lambda: T.buffer_store(b["table"], rows.page_ids[i], [n32 * 2 + i]))

        e.launch(((n + p + threads - 1) // threads,), threads, store)

    return e.prim_func(
        [
            ("positions", ("n",), "int32"),
            ("sequences", ("n",), "int32"),
            ("page_indptr", ("r1",), "int32"),
            ("page_ids", ("p",), "int32"),
            ("table", ("t",), "int32"),
        ],
        emit,
    )
