"""The attention of one GPU block: some rows of a sequence, and some of their heads.

The softmax is a flash-style online softmax. A sequence is divided, from its first token, into
splits of SPLIT tokens, and these into tiles of TILE: a split's state (largest score, sum of
weights, sum of weighted values) is updated tile by tile, and the states of the splits are merged in
ascending order. The splits, and so every bit of a row, depend on the row's position alone, not on
which block computes a split or on the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import AttentionSpec, PagedAttentionSpec

from . import emit as e
from .batch_table import BatchRows, element
from .kv_integers import Integers, Place
from .splits import SPLIT

TILE = 64  # tokens of a tile
PARTS = 8  # parts of a tile, whose maximum scores are reduced independently
LOWEST = -3.0e38  # a value below every real score
assert SPLIT % TILE == 0

Load = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SharedBuffers:
    """Shared memory of a block; a unit is one head of one row."""

    q: Any  # [units * e], q times the scale of scores
    scores: Any  # [units * TILE], scores, later replaced by softmax weights
    tops: Any  # [units * PARTS], largest score of each part of a tile
    largest: Any  # [units], largest score of the split before this tile
    grown: Any  # [units], largest score of the split including this tile
    factor: Any  # [units], factor that rescales the sums of earlier tiles
    # int32 [rows], last position that a row attends to; -1: the row is of another sequence
    last: Any
    begin: Any = None  # int32 [rows], first position that a row attends to; None: `last` says it

    @staticmethod
    def of(rows: int, heads: int, head_dim: int, *, begins: bool = False) -> SharedBuffers:
        """Allocate the arrays: `bytes_of` bytes of shared memory, and 4 a row with `begins`."""
        units = rows * heads
        sizes = (head_dim, TILE, PARTS, 1, 1, 1)
        q, scores, tops, largest, grown, factor = (e.shared((units * k,)) for k in sizes)
        last = e.shared((rows,), "int32")
        begin = e.shared((rows,), "int32") if begins else None
        return SharedBuffers(q, scores, tops, largest, grown, factor, last, begin)


def bytes_of(rows: int, heads: int, head_dim: int) -> int:
    """Return the bytes of shared memory of a block."""
    return 4 * (rows * heads * (head_dim + TILE + PARTS + 3) + rows)


@dataclass(frozen=True, slots=True)
class Block:
    """The threads of a block, and the heads and rows that they compute."""

    count: int  # number of rows
    heads: int  # heads of each row, all of one KV head
    first_head: Any
    thread: Any
    threads: int


class Attend:
    """Emits the attention of one block, for the rows of one sequence at a time."""

    def __init__(
        self,
        spec: AttentionSpec,
        pages: Any,
        rows: BatchRows,
        shared: SharedBuffers,
        block: Block,
        own: tuple[Load, Load] | None = None,
        bias: Any = None,
    ) -> None:
        """Initialize; arguments as in `attention.launch_rows`.

        `own` loads key and value of the last token, which are not read from pages; then the block
        has one row, and `last` of `unsplit` is the position of that token.
        """
        heads, threads = block.heads, block.threads
        self.spec, self.pages, self.rows, self.shared = spec, pages, rows, shared
        self.count, self.heads, self.units = block.count, heads, block.count * heads
        self.thread, self.threads, self.own = block.thread, threads, own
        self.bias = bias
        self.first_head = block.first_head
        self.kv_head = e.let(e.div(block.first_head, spec.heads // spec.kv_heads))
        self.integers = Integers.of(spec)
        self.size = self.units * spec.head_dim
        self.slots = -(-self.size // threads)  # output elements of a thread
        self.turns = -(-self.units // (threads // TILE))  # units whose scores one thread computes
        self.scores = e.private(self.turns)  # scores of the thread's token in the tile, by turn
        # Per output slot: sums of weighted values and of weights, in this split and in earlier
        # splits.
        self.sums, self.totals = e.private(self.slots), e.private(self.slots)
        self.all_sums, self.all_totals = e.private(self.slots), e.private(self.slots)
        self.all_largest = e.private(self.slots)

    def unsplit(self, first_page: Any, begin: Any, last: Any, stored: Any) -> None:
        """Emit all splits of a row's tokens, from token `begin` up to position `last`.

        `begin` is the first token that a row attends to. The cache has `stored` tokens of the
        sequence. With `last` -1 no loop runs. Call `divide` afterwards. Splits before `begin` would
        change no bit.
        """
        self.start()
        before = begin // SPLIT
        with T.serial(T.max((last + SPLIT) // SPLIT - before, 0)) as split:
            self.split(first_page, e.let((before + split) * SPLIT), begin, last, stored)
            self._merge()

    def start(self) -> None:
        """Emit the softmax state before the first split."""
        for slot in range(self.slots):
            T.buffer_store(self.all_sums, T.float32(0), [slot])
            T.buffer_store(self.all_totals, T.float32(0), [slot])
            T.buffer_store(self.all_largest, T.float32(LOWEST), [slot])

    def split(self, first_page: Any, first: Any, begin: Any, last: Any, stored: Any) -> None:
        """Emit the state of the split from token `first` on: `sums`, `totals`, `shared.largest`.

        Tokens before `begin` may have no pages.
        """
        s = self.shared

        def clear(unit: Any) -> None:
            T.buffer_store(s.largest, T.float32(LOWEST), [unit])

        e.barrier()
        e.over(self.units, self.threads, self.thread, clear)
        for slot in range(self.slots):
            T.buffer_store(self.sums, T.float32(0), [slot])
            T.buffer_store(self.totals, T.float32(0), [slot])
        e.barrier()
        tiles = T.min(SPLIT // TILE, (last - first + TILE) // TILE)
        behind = T.int32(0)
        if self.spec.window is not None:
            behind = e.let(T.max(begin - first, 0) // TILE)
        with T.serial(T.max(tiles - behind, 0)) as tile:
            start = e.let(first + (behind + tile) * TILE)
            # number of the tile's tokens that are in the cache
            tile_tokens = e.let(T.max(T.min(stored - start, TILE), 0))
            self._scores(first_page, start, begin, tile_tokens, last)
            e.barrier()
            self._tops()
            e.barrier()
            self._weights()
            e.barrier()
            self._values(first_page, start, begin, tile_tokens, last)
            e.barrier()

    def merged(self, slot: int, largest: Any, total: Any, value: Any) -> None:
        """Emit the merge of a split's state into the state of earlier splits."""
        before = e.let(self.all_largest[slot])
        top = e.let(T.max(before, largest))
        old, new = e.let(T.exp(before - top)), e.let(T.exp(largest - top))
        for known, added in ((self.all_totals, total), (self.all_sums, value)):
            T.buffer_store(known, e.fma(known[slot], old, e.let(added * new)), [slot])
        T.buffer_store(self.all_largest, top, [slot])

    def divide(
        self,
        store: Callable[[int, Any, Any, Any], None],
        sink: Callable[[Any], Any] | None = None,
    ) -> None:
        """Emit `store(slot, unit, k, value)` for each output element of this thread.

        `sink(unit)` gives the attention sink of the unit's head.
        """

        def one(slot: int, unit: Any, k: Any) -> None:
            total = self.all_totals[slot]
            if sink is not None:
                above = T.min(sink(unit) - self.all_largest[slot], T.float32(80))
                total = total + T.exp(above)
            store(slot, unit, k, self.all_sums[slot] / total)

        self.each_slot(one)

    def each_slot(self, emit: Callable[[int, Any, Any], None]) -> None:
        """Emit `emit(slot, unit, k)` for each output element of this thread."""
        d = self.spec.head_dim
        for slot in range(self.slots):
            i = slot * self.threads + self.thread

            def one(slot: int = slot, i: Any = i) -> None:
                emit(slot, e.let(e.div(i, d)), e.let(e.mod(i, d)))

            if (slot + 1) * self.threads > self.size:
                e.when(i < self.size, one)
            else:
                one()

    def _merge(self) -> None:
        self.each_slot(
            lambda slot, unit, k: self.merged(
                slot, self.shared.largest[unit], self.totals[slot], self.sums[slot]
            )
        )

    def _place(self, first_page: Any, token: Any) -> tuple[Any, Any]:
        """Emit the page of a sequence's token, and the token's index in the page."""
        size = self.spec.page_size
        page = e.let(self.rows.page(first_page, token // size))
        return page, e.let(token % size)

    def _scores(self, first_page: Any, start: Any, begin: Any, tile_tokens: Any, last: Any) -> None:
        """Emit q .

        k of each unit and token of the tile; LOWEST where a row does not attend to the token.
        """
        s, d, step = self.shared, self.spec.head_dim, self.threads // TILE
        turns = self.turns
        token = e.let(self.thread % TILE)
        units = [e.let(self.thread // TILE + turn * step) for turn in range(turns)]
        queries = [e.let(T.min(unit, self.units - 1) * d) for unit in units]

        def dots(key: Callable[[Any, int], list[Any]], factor: Any = None) -> None:
            """Emit a thread's dot products with one key; `key(k, count)` loads its elements.

            The products are multiplied by `factor`, if there is one.
            """
            sums = e.private(4 * turns)
            for i in range(4 * turns):
                T.buffer_store(sums, T.float32(0), [i])

            def add(k: Any, count: int) -> None:
                elements = [e.let(x) for x in key(k, count)]
                for turn in range(turns):
                    own = queries[turn]
                    for i, x in enumerate(elements):
                        value = e.fma(s.q[own + k + i], x, sums[4 * turn + i])
                        T.buffer_store(sums, value, [4 * turn + i])

            if d >= 4:
                with T.serial(d // 4) as k:
                    add(k * 4, 4)
            if d % 4:
                add(d // 4 * 4, d % 4)
            for turn, unit in enumerate(units):
                at = 4 * turn
                score = (sums[at] + sums[at + 1]) + (sums[at + 2] + sums[at + 3])
                if factor is not None:
                    score = e.let(score * factor)
                if self.spec.softcap is not None:
                    score = _capped(e.let(score), self.spec.softcap)
                seen = last
                if self.count > 1:
                    row = e.let(T.min(e.div(unit, self.heads), self.count - 1))
                    seen = e.let(s.last[row])
                if self.spec.slopes:
                    score = e.fma(self._slope(unit), self._distance(start + token, seen), score)
                if self.bias is not None:
                    score = score + self._bias(unit, seen - (start + token))
                if self.count > 1:
                    hidden = start + token > seen
                    if s.begin is not None:
                        first = e.let(s.begin[row])
                        hidden = T.Or(hidden, start + token < first)
                    elif self.spec.window is not None:
                        hidden = T.Or(hidden, start + token <= seen - self.spec.window)
                    score = T.if_then_else(hidden, T.float32(LOWEST), score)
                T.buffer_store(self.scores, score, [turn])

        def from_pages() -> None:
            page, at = self._place(first_page, start + token)
            if self.integers:
                integers, place = self.integers, Place(self.pages, page, self.kv_head, at)
                dots(lambda k, _: integers.keys(place, k), integers.key_scale(place))
            else:
                dots(lambda k, count: self._elements(page, at, k, count))

        def none() -> None:
            for turn in range(turns):
                T.buffer_store(self.scores, T.float32(LOWEST), [turn])

        def otherwise() -> None:
            if self.own is None:
                none()
                return
            key = self.own[0]
            e.if_else(
                start + token == last,
                lambda: dots(lambda k, count: [key(k + i) for i in range(count)]),
                none,
            )

        stored = token < tile_tokens
        if self.spec.window is not None:
            stored = T.And(stored, start + token >= begin)
        e.if_else(stored, from_pages, otherwise)
        for turn, unit in enumerate(units):
            self._put(unit, token, self.scores[turn])

    def _slope(self, unit: Any) -> Any:
        """Emit the ALiBi slope of a unit's head."""
        return e.let(e.constant(self.spec.slopes, self._head(unit)))

    def _head(self, unit: Any) -> Any:
        """Emit the query head of a unit."""
        return e.let(self.first_head + e.mod(T.min(unit, self.units - 1), self.heads))

    def _bias(self, unit: Any, distance: Any) -> Any:
        """Emit the bias of a key that is `distance` tokens before the unit's row."""
        place = T.max(T.min(distance, self.spec.reach or 0), 0)
        return e.let(self.bias[self._head(unit), place])

    @staticmethod
    def _distance(token: Any, position: Any) -> Any:
        """Emit a key's position minus the row's position, as float32."""
        return e.let(T.Cast("float32", token - position))

    def _put(self, unit: Any, token: Any, score: Any) -> None:
        def store() -> None:
            T.buffer_store(self.shared.scores, score, [unit * TILE + token])

        if self.units % (self.threads // TILE):
            e.when(unit < self.units, store)
        else:
            store()

    def _elements(self, page: Any, at: Any, k: Any, count: int) -> list[Any]:
        """Emit the loads of `count` elements of a key, float32."""
        d = self.spec.head_dim
        if count == 4 and d % 4 == 0:
            return e.vector(self.pages, *element(self.pages, page, 0, self.kv_head, at, k))
        own = [element(self.pages, page, 0, self.kv_head, at, k + i) for i in range(count)]
        return [e.load(self.pages, *index) for index in own]

    def _tops(self) -> None:
        """Emit the largest score of each part of the tile."""
        s, size = self.shared, TILE // PARTS

        def find(i: Any) -> None:
            top = e.private(1)
            T.buffer_store(top, s.scores[i * size], [0])
            with T.serial(size - 1) as j:
                T.buffer_store(top, T.max(top[0], s.scores[i * size + 1 + j]), [0])
            T.buffer_store(s.tops, top[0], [i])

        e.over(self.units * PARTS, self.threads, self.thread, find)

    def _weights(self) -> None:
        """Emit softmax weights in the place of scores, and the factor for earlier sums."""
        s = self.shared

        for turn in range(self.turns):
            unit = e.let(self.thread // TILE + turn * (self.threads // TILE))
            at = e.let(T.min(unit, self.units - 1))
            top = self._top(at)
            score = e.let(self.scores[turn])
            weight = T.if_then_else(score > T.float32(LOWEST), T.exp(score - top), T.float32(0))
            self._put(unit, self.thread % TILE, e.let(weight))
            factor = e.let(T.exp(s.largest[at] - top))

            def keep(unit: Any = unit, top: Any = top, factor: Any = factor) -> None:
                T.buffer_store(s.factor, factor, [unit])
                T.buffer_store(s.grown, top, [unit])

            e.when(T.And(self.thread % TILE == 0, unit < self.units), keep)

    def _top(self, unit: Any) -> Any:
        """Emit the largest score of a unit's split, including this tile."""
        s, top = self.shared, e.private(1)
        T.buffer_store(top, s.largest[unit], [0])
        for part in range(PARTS):
            T.buffer_store(top, T.max(top[0], s.tops[unit * PARTS + part]), [0])
        return top[0]

    def _values(self, first_page: Any, start: Any, begin: Any, tile_tokens: Any, last: Any) -> None:
        """Emit sums = sums * factor + (weights times values), and likewise the sum of weights."""
        s, d = self.shared, self.spec.head_dim
        # whether all slots of a thread are one column of several units
        together = self.threads % d == 0

        def scale(slot: int, unit: Any, k: Any) -> None:
            for known in (self.sums, self.totals):
                T.buffer_store(known, known[slot] * s.factor[unit], [slot])

        self.each_slot(scale)
        e.over(
            self.units,
            self.threads,
            self.thread,
            lambda unit: T.buffer_store(s.largest, s.grown[unit], [unit]),
        )

        def add(slot: int, unit: Any, token: Any, value: Any) -> None:
            weight = e.let(s.scores[unit * TILE + token])

            def accumulate() -> None:
                T.buffer_store(self.sums, e.fma(weight, value, self.sums[slot]), [slot])
                T.buffer_store(self.totals, self.totals[slot] + weight, [slot])

            # A value that a row does not attend to is skipped, not multiplied by zero: it may be
            # infinite.
            e.when(weight > T.float32(0), accumulate)

        def value_of(place: tuple[Any, Any], k: Any) -> Any:
            if self.integers:
                at = Place(self.pages, place[0], self.kv_head, place[1])
                return e.let(self.integers.value(at, k))
            index = element(self.pages, place[0], 1, self.kv_head, place[1], k)
            return e.let(e.load(self.pages, *index))

        skipped = T.int32(0)
        if self.spec.window is not None:
            skipped = e.let(T.min(T.max(begin - start, 0), tile_tokens))
        if together:
            k = e.let(e.mod(self.thread, d))
            with T.serial(tile_tokens - skipped) as i:
                token = skipped + i
                value = value_of(self._place(first_page, start + token), k)
                self.each_slot(lambda slot, unit, _: add(slot, unit, token, value))
        else:

            def column(slot: int, unit: Any, k: Any) -> None:
                with T.serial(tile_tokens - skipped) as i:
                    token = skipped + i
                    value = value_of(self._place(first_page, start + token), k)
                    add(slot, unit, token, value)

            self.each_slot(column)
        if self.own is not None:
            own, at = self.own[1], e.let(last - start)
            e.when(
                at < TILE,
                lambda: self.each_slot(lambda slot, unit, k: add(slot, unit, at, e.let(own(k)))),
            )


def _capped(score: Any, cap: float) -> Any:
    """Emit cap * tanh(score / cap), computed from |score| so that exp cannot overflow."""
    size = T.max(score, T.float32(0) - score)
    power = e.let(T.exp(size * e.number(-2 / cap)))
    tanh = e.let((T.float32(1) - power) / (T.float32(1) + power) * e.number(cap))
    return T.if_then_else(score < T.float32(0), T.float32(0) - tanh, tanh)


def has_begins(spec: AttentionSpec) -> bool:
    """Return whether the first position that a row attends to does not follow from the last."""
    return spec.last_visible and spec.window is not None


def first_seen(spec: AttentionSpec | PagedAttentionSpec, position: Any) -> Any:
    """Return the first token that a row at `position` attends to."""
    if spec.window is None:
        return T.int32(0)
    return T.max(position + 1 - spec.window, 0)
