"""What the attention kernel of CPUs works on: the cache, groups of queries, blocks, and sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm.script import tirx as T

from wherry.ops import AttentionSpec

from . import vector as v
from .isa import Isa
from .kv_integers import Integers

PAGE = 16  # tokens of a page
BLOCK = 256  # tokens of a block
LINE = 64  # bytes of a line of CPUs' caches
LOWEST = -3.0e38
LANES = v.span(0, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Buffers of queries, keys and values; see `KernelSet.attention`."""

    Q: Any
    Position: Any
    Ids: Any
    Pages: Any
    integers: Integers | None  # layout of integers with scales; None: floats
    Bias: Any = None  # [h, reach + 1], if the spec has a reach
    LastVisible: Any = None  # [n], if the spec has it

    def last(self, row: Any) -> Any:
        """Return the last position that a row attends to."""
        return (self.Position if self.LastVisible is None else self.LastVisible)[row]

    @property
    def scaled(self) -> bool:
        """Return whether `visit_block` multiplies weights by the scales of values."""
        return self.integers is not None and self.integers.value_bits == 8

    @property
    def key_lines(self) -> int:
        """Return the lines that a page's keys of one head have, with their scales."""
        return self._key_bytes // LINE

    @property
    def value_lines(self) -> int:
        """Return the lines that a page's values of one head have, with their scales."""
        page_bytes = int(self.Pages.shape[4]) * PAGE * self._item
        return (page_bytes - self._key_bytes if self.integers else page_bytes) // LINE

    def line(self, page: Any, head: Any, values: Any, line: Any) -> Any:
        """Emit the address of a line of a head's keys in a page, or of its values."""
        step = LINE // self._item
        if self.integers:  # values follow their keys
            within = line + T.Select(values, self.key_lines, 0)
            return T.address_of(self.Pages[page, 0, head, 0, within * step])
        return T.address_of(self.Pages[page, T.Select(values, 1, 0), head, 0, line * step])

    @property
    def _item(self) -> int:
        return np.dtype(str(self.Pages.dtype)).itemsize

    @property
    def _key_bytes(self) -> int:
        if self.integers:
            return self.integers.key_bytes
        return int(self.Pages.shape[4]) * PAGE * self._item

    @property
    def value_vectors(self) -> list[tuple[Any, int]]:
        """Return index and lanes of each vector in which values are loaded."""
        e, integers = int(self.Q.shape[2]), self.integers
        if integers is None or integers.value_bits == 8:
            return vectors(e)
        lanes = integers.group // 2
        return [(v.span(c, lanes), lanes) for c in range(0, e, lanes)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """State of the online softmax: buffers float32, with one slot per query."""

    largest: Any  # [slots], maximum score so far, times scale * log2(e)
    total: Any  # [slots, 16], sums of softmax weights, by token modulo 16
    out: Any  # [slots, e], sums of weight * value

    @classmethod
    def alloc(cls, slots: Any, head_dim: int) -> Sums:
        """Allocate the sums, on the stack if `slots` is a constant; needs an enclosing sblock."""
        return cls(
            largest=T.sblock_alloc_buffer((slots,), "float32"),
            total=T.sblock_alloc_buffer((slots, 16), "float32"),
            out=T.sblock_alloc_buffer((slots, head_dim), "float32"),
        )

    def clear(self, slot: Any) -> None:
        """Emit the initial softmax state of a query."""
        T.buffer_store(self.largest, T.float32(LOWEST), [slot])
        T.buffer_store(self.total, v.splat(0.0, 16), [slot, LANES])
        for span, lanes in vectors(int(self.out.shape[1])):
            T.buffer_store(self.out, v.splat(0.0, lanes), [slot, span])

    def add(self, slot: Any, part: Sums, part_slot: Any, isa: Isa) -> None:
        """Emit the online softmax step that merges a block's sums, in another slot, into `slot`."""
        with T.sblock("add"):
            T.reads()
            T.writes()
            old, new = v.let(self.largest[slot]), v.let(part.largest[part_slot])
            top = v.let(v.maximum(new, old))
            before, here = (v.exp2(x - top, 1, isa.fma) for x in (old, new))
            T.buffer_store(self.largest, top, [slot])
            pairs = [(self.total, part.total, LANES, 16)]
            pairs += [(self.out, part.out, *x) for x in vectors(int(self.out.shape[1]))]
            for mine, other, span, lanes in pairs:
                added = joined(mine[slot, span], before, other[part_slot, span], here, lanes, isa)
                T.buffer_store(mine, added, [slot, span])


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGroup:
    """Queries that visit a block together: `rows` rows from `row` on, with `heads` heads each.

    The heads begin at `head`.
    """

    rows: int
    heads: int
    row: Any
    head: Any
    kv_head: Any
    slot: Any  # slot of the first query; the others follow row by row
    stride: Any  # slots between consecutive rows

    @property
    def queries(self) -> int:
        """Return the number of queries in the group."""
        return self.rows * self.heads

    def place(self, query: Any) -> tuple[Any, Any, Any]:
        """Return row, head and slot of a query."""
        row, head = query // self.heads, query % self.heads
        return self.row + row, self.head + head, self.slot + row * self.stride + head


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The tokens of a block that a group's rows attend to, counted from the block's first token.

    Row r attends to tokens before `end_of(r)`; without a window, to all of these. In
    cross-attention, where all rows attend to the same tokens, `seen` has them for every row.
    """

    first: Any  # position of the block's first token
    seen: Any  # end of the tokens that the last row attends to
    visible: Any  # end of the tokens that the first row attends to; may be negative
    own: Any  # end of the tokens up to the first row itself, before which its window lies
    # what has the rows' ends; None: each row's is one token after that of the row before
    ends: tuple[Cache, QueryGroup] | None
    window: int | None
    start: Any  # first token that the first row attends to
    page: Any  # page of the token `start`
    last: Any  # last page that the last row attends to, perhaps of a later block

    @classmethod
    def of(cls, spec: AttentionSpec, cache: Cache, group: QueryGroup, block: Any) -> Span:
        """Emit the span of a group in a block."""
        first = v.let(T.Cast("int32", block) * BLOCK)
        end = v.let(cache.last(group.row + (group.rows - 1)) + 1 - first)
        own = visible = v.let(cache.Position[group.row] + 1 - first)
        if cache.LastVisible is not None:
            visible = v.let(cache.last(group.row) + 1 - first)
        start = T.int32(0)
        if spec.window is not None:
            start = v.let(T.max(own - spec.window, 0))
        return cls(
            first=first,
            seen=v.let(T.min(end, BLOCK)),
            visible=visible,
            own=own,
            ends=(cache, group) if cache.LastVisible is not None else None,
            window=spec.window,
            start=start,
            page=v.let(start // PAGE) if spec.window is not None else start,
            last=v.let((end - 1) // PAGE),
        )

    def end_of(self, row: Any) -> Any:
        """Return the end of the tokens that row `row` of the group attends to."""
        if self.ends is None:
            return self.visible + row
        cache, group = self.ends
        return cache.last(group.row + row) + 1 - self.first

    @property
    def pages(self) -> Any:
        """Return the end of the pages that the last row attends to."""
        return T.ceildiv(self.seen, PAGE)


def first_block(spec: AttentionSpec, position: Any) -> Any:
    """Return the first block that the row at `position` attends to."""
    if spec.window is None:
        return T.int32(0)
    return T.max(position + 1 - spec.window, 0) // BLOCK


def vectors(head_dim: int) -> list[tuple[Any, int]]:
    """Return index and lanes of each vector of a head, in the widest vectors that divide it."""
    lanes = next(width for width in (16, 8, 4) if head_dim % width == 0)
    return [(v.span(c, lanes), lanes) for c in range(0, head_dim, lanes)]


def joined(old: Any, before: Any, new: Any, here: Any, lanes: int, isa: Isa) -> Any:
    """Emit old * before + new * here: sums of earlier blocks, merged with a block's."""
    scaled = v.let(new * v.splat(here, lanes))
    return v.fma(old, v.splat(before, lanes), scaled, lanes, isa.fma)
