"""Attention of a group of queries over one block of tokens; every path of attention.py calls it.

A block is `BLOCK` tokens of a sequence from a position that is a multiple of `BLOCK`. The queries
of a group (neighbouring rows, query heads of one KV head) share each loaded key and value, and
their sums stay in registers. Each query computes, in this order: the dot products with the keys,
each one chain of multiply-adds; the block's softmax; the sum of weighted values, token by token,
from zero; then one step of the online softmax (Milakov and Gimelshein, 2018) merges the block with
earlier blocks. A query's operations do not depend on other queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import AttentionSpec
from wherry.targets.kernels.constants import constant

from . import vector as v
from .isa import Isa
from .kv_integers import Block, Integers

PAGE = 16  # tokens of a page
BLOCK = 256  # tokens of a block
LOWEST = -3.0e38
QUERIES = 12  # maximum queries of a group
_LOG2_E = 1.4426950408889634
_LANES = v.span(0, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Buffers of queries, keys and values; see `KernelSet.attention`."""

    Q: Any
    Position: Any
    Ids: Any
    Pages: Any
    integers: Integers | None  # layout of integers with scales; None: floats
    Bias: Any = None  # [h, reach + 1], if the spec has a reach

    @property
    def scaled(self) -> bool:
        """Return whether `visit_block` multiplies weights by the scales of values."""
        return self.integers is not None and self.integers.value_bits == 8

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
        T.buffer_store(self.total, v.splat(0.0, 16), [slot, _LANES])
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
            pairs = [(self.total, part.total, _LANES, 16)]
            pairs += [(self.out, part.out, *x) for x in vectors(int(self.out.shape[1]))]
            for mine, other, span, lanes in pairs:
                added = _joined(mine[slot, span], before, other[part_slot, span], here, lanes, isa)
                T.buffer_store(mine, added, [slot, span])


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
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

    Row r attends to tokens before `visible` + r; without a window, to all of these. In
    cross-attention, where all rows attend to the same tokens, `seen` has them for every row.
    """

    first: Any  # position of the block's first token
    seen: Any  # end of the tokens that the last row attends to
    visible: Any  # end of the tokens that the first row attends to; may be negative
    window: int | None
    start: Any  # first token that the first row attends to
    page: Any  # page of the token `start`

    @classmethod
    def of(
        cls, spec: AttentionSpec, cache: Cache, group: Group, first: Any, seen: Any, visible: Any
    ) -> Span:
        """Return the span of a group in the block that begins at position `first`."""
        start = T.int32(0)
        if spec.window is not None:
            start = v.let(T.max(visible - spec.window, 0))
        page = v.let(start // PAGE) if spec.window is not None else start
        return cls(
            first=first, seen=seen, visible=visible, window=spec.window, start=start, page=page
        )

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


def group_shape(shared: int, isa: Isa) -> tuple[int, int]:
    """Return how many rows and heads a group has, so that registers hold a sum for each query."""
    most = next(q for q in range(QUERIES, 0, -1) if q == 1 or _fit(isa, q, 1))
    heads = max(c for c in range(1, shared + 1) if shared % c == 0 and c <= most)
    return most // heads, heads


def visit_block(
    spec: AttentionSpec, isa: Isa, cache: Cache, sums: Sums, group: Group, block: Any, table: Any
) -> None:
    """Emit the update of a group's `sums` by block `block`; the sequence's pages begin at `table`.

    The last row of the group must attend to some token of the block.
    """
    with T.sblock("visit"):
        T.reads()
        T.writes()
        first = v.let(T.Cast("int32", block) * BLOCK)  # position of the block's first token
        pages = v.let(table + T.Cast("int32", block) * (BLOCK // PAGE))
        last = cache.Position[group.row + (group.rows - 1)]
        seen = v.let(T.min(last + 1 - first, BLOCK))
        # end of the tokens that the first row attends to; may be negative
        visible = v.let(cache.Position[group.row] + 1 - first)
        span = Span.of(spec, cache, group, first, seen, visible)
        weights = T.sblock_alloc_buffer((group.queries, BLOCK), "float32")
        # [0]: factors of earlier blocks' sums; [1]: factors of this block's sums.
        factors = T.sblock_alloc_buffer((2, 16), "float32")
        _scores(isa, cache, group, pages, span, weights)
        _softmax(spec, isa, cache, sums, group, span, weights, factors)
        if cache.scaled:
            _scale_weights(cache, group, pages, span, weights)
        _add_values(isa, cache, sums, group, pages, span, weights, factors)


def _joined(old: Any, before: Any, new: Any, here: Any, lanes: int, isa: Isa) -> Any:
    scaled = v.let(new * v.splat(here, lanes))
    return v.fma(old, v.splat(before, lanes), scaled, lanes, isa.fma)


def _fit(isa: Isa, queries: int, vectors: int) -> bool:
    """Return whether registers hold queries * vectors sums, the loaded vectors, and a query."""
    # a single query uses each vector once, as a memory operand
    loaded = vectors if queries > 1 else 0
    return (queries * vectors + loaded) * (16 // isa.lanes) < isa.registers


def _together(isa: Isa, queries: int, most: int) -> int:
    """Return how many vectors of each query (up to `most`) one loop sums, to share loads."""
    return next(c for c in (4, 2, 1) if c == 1 or (c <= most and _fit(isa, queries, c)))


def _as_float(stored: Any, lanes: int, isa: Isa) -> Any:
    """Emit the load of a cache vector, converted to float32."""
    dtype = str(stored.ty.dtype)
    if dtype.startswith("float16") and not isa.half:
        return v.let(v.half_to_float(stored, lanes))
    return v.let(stored if dtype.startswith("float32") else T.Cast(v.float_type(lanes), stored))


def _zeros(count: int, lanes: int) -> list[Any]:
    """Emit `count` accumulators, vectors of zeros."""
    made = [T.sblock_alloc_buffer((lanes,), "float32") for _ in range(count)]
    for acc in made:
        T.buffer_store(acc, v.splat(0.0, lanes), [v.span(0, lanes)])
    return made


def _multiply_add(
    accs: Sequence[Any], scalar: Any, values: list[Any], lanes: int, isa: Isa
) -> None:
    """Emit acc += scalar * value for each value."""
    factor, span = v.let(v.splat(scalar, lanes)), v.span(0, lanes)
    for acc, value in zip(accs, values, strict=True):
        T.buffer_store(acc, v.fma(factor, value, acc[span], lanes, isa.fma), [span])


def _scores(isa: Isa, cache: Cache, group: Group, pages: Any, seen: Span, weights: Any) -> None:
    """Emit weights[query] = the query's dot products with the keys; garbage beyond visible keys."""
    # With more than two pages at a time, the last iteration would often waste loads.
    together = _together(isa, group.queries, 2 if group.queries > 1 else 4)
    columns, queries = range(together), range(group.queries)
    steps = T.ceildiv(seen.pages - seen.page, together)
    with T.serial(steps) as step, T.sblock("scores"):
        T.reads()
        T.writes()
        numbers = [seen.page + step * together + c for c in columns]
        # Indices are clamped: the last page is loaded twice instead of a page beyond it.
        ids = [v.let(cache.Ids[pages + T.min(c, (seen.seen - 1) // PAGE)]) for c in numbers]
        integers, head = cache.integers, group.kv_head
        blocks = [Block(cache.Pages, i, head) for i in ids]
        factors = [integers.key_scales(block) if integers else None for block in blocks]
        accs = [_zeros(together, 16) for _ in queries]
        step_of_keys = integers.keys_at_once if integers else 1
        with T.serial(int(cache.Q.shape[2]) // step_of_keys) as d:
            loaded = [_keys(cache, block, d, isa) for block in blocks]
            for j, keys in enumerate(zip(*loaded, strict=True)):
                for k in queries:
                    row, head, _ = group.place(k)
                    q = cache.Q[row, head, d * step_of_keys + j]
                    _multiply_add(accs[k], q, list(keys), 16, isa)
        for k in queries:
            for c, acc, factor in zip(numbers, accs[k], factors, strict=True):
                score = acc[_LANES] if factor is None else acc[_LANES] * factor
                column = T.min(c, BLOCK // PAGE - 1) if seen.window is not None else c
                T.buffer_store(weights, score, [k, v.span(column * PAGE, 16)])


def _keys(cache: Cache, at: Block, d: Any, isa: Isa) -> list[Any]:
    """Emit the load of element d of a page's keys (for int8, of elements 2d and 2d + 1)."""
    if cache.integers:
        return cache.integers.load_keys(at, d)
    return [_as_float(cache.Pages[at.page, 0, at.head, 0, v.span(d * PAGE, 16)], 16, isa)]


def _softmax(
    spec: AttentionSpec,
    isa: Isa,
    cache: Cache,
    sums: Sums,
    group: Group,
    seen: Span,
    weights: Any,
    factors: Any,
) -> None:
    """Emit scores -> softmax weights, and the new maxima and totals.

    Weights are 0 for tokens that a row does not attend to.
    """
    factor = (1.0 if spec.softcap else spec.scale) * _LOG2_E
    # The state of a row that attends to nothing in the block must not change. Its weights are
    # finite and multiplied by 0, unless LOWEST * factor overflows; with a window there may be no
    # earlier block with a larger score.
    guarded = spec.window is not None or factor >= 1.0
    highest = T.sblock_alloc_buffer((16,), "float32")  # largest score of the block, per lane
    for i in (0, 1):
        T.buffer_store(factors, v.splat(0.0, 16), [i, _LANES])
    with T.serial(group.queries) as k, T.sblock("largest"):
        T.reads()
        T.writes()
        row, head, slot = group.place(k)
        visible = v.let(cache.Position[row] + 1 - seen.first)
        slope = _slope(spec, head)
        most = T.sblock_alloc_buffer((16,), "float32")
        T.buffer_store(most, v.splat(LOWEST, 16), [_LANES])
        with T.serial(seen.pages - seen.page) as i:
            c = seen.page + i
            span = v.span(c * 16, 16)
            score = weights[k, span]
            if spec.softcap:
                score = _capped(v.let(score), spec, isa)
            if slope is not None:
                score = v.fma(slope, _distance(visible, c), v.let(score), 16, isa.fma)
            if cache.Bias is not None:
                score = score + _bias(spec, cache, head, visible, c)
            tokens = _seen_by(visible, c, spec)
            score = v.let(T.Select(tokens, score, v.splat(LOWEST, 16)))
            T.buffer_store(weights, score, [k, span])
            T.buffer_store(most, v.maximum(score, most[_LANES]), [_LANES])
        largest = v.let(v.max_lanes(most[_LANES], 16))
        new = v.let(largest * T.float32(factor))
        if guarded:
            new = v.let(T.Select(largest > T.float32(LOWEST), new, T.float32(LOWEST)))
        old = v.let(sums.largest[slot])
        top = v.let(v.maximum(new, old))
        T.buffer_store(highest, new, [k])
        T.buffer_store(sums.largest, top, [slot])
        T.buffer_store(factors, old - top, [0, k])
        T.buffer_store(factors, new - top, [1, k])
    for i in (0, 1):
        T.buffer_store(factors, v.exp2(factors[i, _LANES], 16, isa.fma), [i, _LANES])
    with T.serial(group.queries) as k, T.sblock("weights"):
        T.reads()
        T.writes()
        row, _, slot = group.place(k)
        top = v.let(v.splat(T.float32(0) - highest[k], 16))
        total = _zeros(1, 16)[0]
        with T.serial(seen.pages - seen.page) as i:
            c = seen.page + i
            span = v.span(c * 16, 16)
            x = v.fma(weights[k, span], v.splat(factor, 16), top, 16, isa.fma)
            weight = v.exp2(x, 16, isa.fma)
            if guarded:
                tokens = _seen_by(cache.Position[row] + 1 - seen.first, c, spec)
                weight = v.let(T.Select(tokens, weight, v.splat(0.0, 16)))
            T.buffer_store(weights, weight, [k, span])
            T.buffer_store(total, total[_LANES] + weight, [_LANES])
        old = sums.total[slot, _LANES]
        joined = _joined(old, factors[0, k], total[_LANES], factors[1, k], 16, isa)
        T.buffer_store(sums.total, joined, [slot, _LANES])


def _seen_by(visible: Any, page: Any, spec: AttentionSpec) -> Any:
    """Emit the mask of a page's 16 tokens that a row attends to: tokens before `visible`."""
    token = T.ramp(T.int32(0), T.int32(1), 16)
    left = visible - page * PAGE
    before = token < T.broadcast(left, 16)
    if spec.window is None:
        return before
    return T.And(before, token >= T.broadcast(left - spec.window, 16))


def _slope(spec: AttentionSpec, head: Any) -> Any:
    """Emit the ALiBi slope of a query head, for unscaled scores, in all lanes."""
    if not spec.slopes:
        return None
    scale = 1.0 if spec.softcap else spec.scale
    return v.let(v.splat(constant([slope / scale for slope in spec.slopes], head), 16))


def _distance(visible: Any, page: Any) -> Any:
    """Emit the positions of a page's 16 tokens minus the row's position, as float32."""
    token = T.ramp(T.int32(0), T.int32(1), 16)
    return v.let(T.Cast(v.float_type(16), token - T.broadcast(visible - 1 - page * PAGE, 16)))


def _bias(spec: AttentionSpec, cache: Cache, head: Any, visible: Any, page: Any) -> Any:
    """Emit the biases of a page's 16 tokens by their distance, for unscaled scores."""
    reach = spec.reach or 0
    token = T.ramp(T.int32(0), T.int32(1), 16)
    before = T.broadcast(visible - 1 - page * PAGE, 16) - token
    place = v.let(
        T.max(T.min(before, T.broadcast(T.int32(reach), 16)), T.broadcast(T.int32(0), 16))
    )
    scale = 1.0 if spec.softcap else spec.scale
    found = cache.Bias[head, place]
    return found if scale == 1.0 else found * v.splat(1.0 / scale, 16)


def _capped(score: Any, spec: AttentionSpec, isa: Isa) -> Any:
    """Emit cap * tanh(score * scale / cap).

    tanh(x) = (1 - exp(-2x)) / (1 + exp(-2x)), computed of |x|.
    """
    assert spec.softcap is not None
    zero, one = v.splat(0.0, 16), v.splat(1.0, 16)
    size = v.let(v.maximum(score, zero - score))
    power = v.exp(size * v.splat(-2.0 * spec.scale / spec.softcap, 16), 16, isa.fma)
    tanh = v.let((one - power) / (one + power) * v.splat(spec.softcap, 16))
    return T.Select(score < zero, zero - tanh, tanh)


def _scale_weights(cache: Cache, group: Group, pages: Any, seen: Span, weights: Any) -> None:
    """Emit weights *= scales of the int8 values, after the sums of unscaled weights."""
    with T.serial(seen.pages - seen.page) as i, T.sblock("scale"):
        T.reads()
        T.writes()
        c = seen.page + i
        page = v.let(cache.Ids[pages + c])
        assert cache.integers is not None
        factor = cache.integers.value_scales(Block(cache.Pages, page, group.kv_head))
        span = v.span(c * PAGE, 16)
        for k in range(group.queries):
            T.buffer_store(weights, weights[k, span] * factor, [k, span])


def _values(
    isa: Isa, cache: Cache, kv_head: Any, page: Any, token: Any, starts: Iterable[int], lanes: int
) -> list[Any]:
    """Emit the load of several vectors of a token's value; `starts` are their first elements."""
    if cache.integers:
        at = Block(cache.Pages, page, kv_head)
        return cache.integers.load_value(at, token, list(starts), lanes, isa.fma)
    first = token * int(cache.Q.shape[2])
    places = [v.span(first + start, lanes) for start in starts]
    return [_as_float(cache.Pages[page, 1, kv_head, 0, x], lanes, isa) for x in places]


def _add_values(
    isa: Isa,
    cache: Cache,
    sums: Sums,
    group: Group,
    pages: Any,
    span: Span,
    weights: Any,
    factors: Any,
) -> None:
    """Emit the sum of weight * value over the tokens for each query, merged into `sums.out`.

    A value that a row does not attend to is skipped, not multiplied by 0: it may be infinite.
    """
    seen, visible, window, start_of_first = span.seen, span.visible, span.window, span.start
    common = seen if group.rows == 1 else v.let(T.max(T.min(visible, seen), 0))
    # Beginning of the tokens that all rows attend to.
    begin_common = start_of_first
    if window is not None and group.rows > 1:
        begin_common = v.let(T.min(T.max(visible + (group.rows - 1) - window, 0), seen))
        common = v.let(T.max(common, begin_common))
    parts, together = cache.value_vectors, _together(isa, group.queries, 4)
    lanes, queries = parts[0][1], range(group.queries)
    for begin in range(0, len(parts), together):
        spans = [span for span, _ in parts[begin : begin + together]]
        starts = range(begin * lanes, (begin + len(spans)) * lanes, lanes)
        accs = [_zeros(len(spans), lanes) for _ in queries]

        def some(first: Any, stop: Any, starts: Any = starts, accs: Any = accs) -> None:
            """Emit the tokens that only some rows attend to, for these rows alone."""
            with T.serial(T.max(stop - first, 0)) as i, T.sblock("diagonal"):
                T.reads()
                T.writes()
                token = v.let(first + i)
                place = v.let(cache.Ids[pages + token // PAGE])
                values = _values(isa, cache, group.kv_head, place, token % PAGE, starts, lanes)
                for row in range(1 if window is None else 0, group.rows):
                    sees = token < visible + row
                    if window is not None:
                        sees = T.And(sees, token >= visible + (row - window))
                    with T.If(sees), T.Then():
                        for k in range(row * group.heads, (row + 1) * group.heads):
                            _multiply_add(accs[k], weights[k, token], values, lanes, isa)

        if window is not None and group.rows > 1:
            some(start_of_first, begin_common)
        first_page = begin_common // PAGE if window is not None else T.int32(0)
        with T.serial(T.max(T.ceildiv(common, PAGE) - first_page, 0)) as i, T.sblock("page"):
            T.reads()
            T.writes()
            page = v.let(first_page + i)
            place = v.let(cache.Ids[pages + page])
            low = T.max(begin_common - page * PAGE, 0) if window is not None else T.int32(0)
            with T.serial(T.min(common - page * PAGE, PAGE) - low) as at, T.sblock("token"):
                T.reads()
                T.writes()
                token = v.let(low + at) if window is not None else at
                values = _values(isa, cache, group.kv_head, place, token, starts, lanes)
                for k in queries:
                    _multiply_add(accs[k], weights[k, page * PAGE + token], values, lanes, isa)
        if group.rows > 1:
            some(common, seen)
        for k in queries:
            slot = group.place(k)[2]
            for span, acc in zip(spans, accs[k], strict=True):
                old, new = sums.out[slot, span], acc[v.span(0, lanes)]
                joined = _joined(old, factors[0, k], new, factors[1, k], lanes, isa)
                T.buffer_store(sums.out, joined, [slot, span])
