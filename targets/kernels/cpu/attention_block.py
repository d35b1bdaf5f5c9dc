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
from typing import Any

from tvm.script import tirx as T

from wherry.ops import AttentionSpec
from wherry.targets.kernels.constants import constant

from . import vector as v
from .attention_state import (
    BLOCK,
    LANES,
    LOWEST,
    PAGE,
    Cache,
    QueryGroup,
    Span,
    Sums,
    joined,
)
from .isa import Isa
from .kv_integers import Block

QUERIES = 12  # maximum queries of a group
_LOG2_E = 1.4426950408889634


def group_shape(shared: int, isa: Isa) -> tuple[int, int]:
    """Return how many rows and heads a group has, so that registers hold a sum for each query."""
    most = next(q for q in range(QUERIES, 0, -1) if q == 1 or _fit(isa, q, 1))
    heads = max(c for c in range(1, shared + 1) if shared % c == 0 and c <= most)
    return most // heads, heads


def visit_block(
    spec: AttentionSpec,
    isa: Isa,
    cache: Cache,
    sums: Sums,
    group: QueryGroup,
    block: Any,
    table: Any,
) -> None:
    """Emit the update of a group's `sums` by block `block`; the sequence's pages begin at `table`.

    The last row of the group must attend to some token of the block.
    """
    with T.sblock("visit"):
        T.reads()
        T.writes()
        pages = v.let(table + T.Cast("int32", block) * (BLOCK // PAGE))
        span = Span.of(spec, cache, group, block)
        weights = T.sblock_alloc_buffer((group.queries, BLOCK), "float32")
        # [0]: factors of earlier blocks' sums; [1]: factors of this block's sums.
        factors = T.sblock_alloc_buffer((2, 16), "float32")
        _scores(isa, cache, group, pages, span, weights)
        softmax(spec, isa, cache, sums, group, span, weights, factors)
        if cache.scaled:
            _scale_weights(cache, group, pages, span, weights)
        _add_values(isa, cache, sums, group, pages, span, weights, factors)


def _fit(isa: Isa, queries: int, vectors: int) -> bool:
    """Return whether registers hold queries * vectors sums, the loaded vectors, and a query."""
    # a single query uses each vector once, as a memory operand
    loaded = vectors if queries > 1 else 0
    return (queries * vectors + loaded) * (16 // isa.lanes) < isa.registers


def _together(isa: Isa, queries: int, most: int) -> int:
    """Return how many vectors of each query (up to `most`) one loop sums, to share loads."""
    return next(c for c in (4, 2, 1) if c == 1 or (c <= most and _fit(isa, queries, c)))


def as_float(stored: Any, lanes: int, isa: Isa) -> Any:
    """Emit the load of a cache vector, converted to float32."""
    dtype = str(stored.ty.dtype)
    if dtype.startswith("float16") and not isa.half:
        return v.let(v.half_to_float(stored, lanes))
    return v.let(stored if dtype.startswith("float32") else T.Cast(v.float_type(lanes), stored))


def _zeros(count: int, lanes: int) -> list[Any]:
    """Emit `count` accumulators, vectors of zeros."""
    accumulators = [T.sblock_alloc_buffer((lanes,), "float32") for _ in range(count)]
    for acc in accumulators:
        T.buffer_store(acc, v.splat(0.0, lanes), [v.span(0, lanes)])
    return accumulators


def _multiply_add(
    accs: Sequence[Any], scalar: Any, values: list[Any], lanes: int, isa: Isa
) -> None:
    """Emit acc += scalar * value for each value."""
    factor, span = v.let(v.splat(scalar, lanes)), v.span(0, lanes)
    for acc, value in zip(accs, values, strict=True):
        T.buffer_store(acc, v.fma(factor, value, acc[span], lanes, isa.fma), [span])


def _scores(
    isa: Isa, cache: Cache, group: QueryGroup, pages: Any, seen: Span, weights: Any
) -> None:
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
        later = [v.let(cache.Ids[pages + T.min(c + together, seen.last)]) for c in numbers]
        integers, head = cache.integers, group.kv_head
        blocks = [Block(cache.Pages, i, head) for i in ids]
        factors = [integers.key_scales(block) if integers else None for block in blocks]
        accs = [_zeros(together, 16) for _ in queries]
        step_of_keys = integers.keys_at_once if integers else 1
        steps_of_keys = int(cache.Q.shape[2]) // step_of_keys
        with T.serial(steps_of_keys) as d:
            # rows of a prompt find in the cache what the first of them has loaded
            for both in zip(ids, later, strict=True) if group.rows == 1 else ():
                _prefetch(cache, group.kv_head, both, d, steps_of_keys)
            loaded = [_keys(cache, block, d, isa) for block in blocks]
            for j, keys in enumerate(zip(*loaded, strict=True)):
                for k in queries:
                    row, head, _ = group.place(k)
                    q = cache.Q[row, head, d * step_of_keys + j]
                    _multiply_add(accs[k], q, list(keys), 16, isa)
        for k in queries:
            for c, acc, factor in zip(numbers, accs[k], factors, strict=True):
                score = acc[LANES] if factor is None else acc[LANES] * factor
                column = T.min(c, BLOCK // PAGE - 1) if seen.window is not None else c
                T.buffer_store(weights, score, [k, v.span(column * PAGE, 16)])


def _prefetch(cache: Cache, head: Any, pages: tuple[Any, Any], step: Any, steps: int) -> None:
    """Emit prefetches of the values of pages[0] and the keys of pages[1]: a part in each step.

    The hardware's prefetcher stops at the end of 4 KiB, so it finds little of what pages hold.
    """
    keys, values = cache.key_lines, cache.value_lines
    each = -(-(keys + values) // steps)
    for j in range(each):
        line = v.let(step * each + j)
        mine = v.let(line >= keys)
        page = T.Select(mine, *pages)
        v.prefetch(cache.line(page, head, mine, T.Select(mine, line - keys, line)), v.L2)


def _keys(cache: Cache, at: Block, d: Any, isa: Isa) -> list[Any]:
    """Emit the load of element d of a page's keys (for int8, of elements 2d and 2d + 1)."""
    if cache.integers:
        return cache.integers.load_keys(at, d)
    return [as_float(cache.Pages[at.page, 0, at.head, 0, v.span(d * PAGE, 16)], 16, isa)]


def softmax(
    spec: AttentionSpec,
    isa: Isa,
    cache: Cache,
    sums: Sums,
    group: QueryGroup,
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
        T.buffer_store(factors, v.splat(0.0, 16), [i, LANES])
    with T.serial(group.queries) as k, T.sblock("largest"):
        T.reads()
        T.writes()
        row, head, slot = group.place(k)
        visible = v.let(cache.Position[row] + 1 - seen.first)
        end = _end(cache, row, visible, seen)
        slope = _slope(spec, head)
        most = T.sblock_alloc_buffer((16,), "float32")
        T.buffer_store(most, v.splat(LOWEST, 16), [LANES])
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
            tokens = _seen_by(end, visible, c, spec)
            score = v.let(T.Select(tokens, score, v.splat(LOWEST, 16)))
            T.buffer_store(weights, score, [k, span])
            T.buffer_store(most, v.maximum(score, most[LANES]), [LANES])
        largest = v.let(v.max_lanes(most[LANES], 16))
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
        T.buffer_store(factors, v.exp2(factors[i, LANES], 16, isa.fma), [i, LANES])
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
                own = cache.Position[row] + 1 - seen.first
                tokens = _seen_by(_end(cache, row, own, seen), own, c, spec)
                weight = v.let(T.Select(tokens, weight, v.splat(0.0, 16)))
            T.buffer_store(weights, weight, [k, span])
            T.buffer_store(total, total[LANES] + weight, [LANES])
        old = sums.total[slot, LANES]
        merged = joined(old, factors[0, k], total[LANES], factors[1, k], 16, isa)
        T.buffer_store(sums.total, merged, [slot, LANES])


def _end(cache: Cache, row: Any, own: Any, seen: Span) -> Any:
    """Emit the end of the tokens that a row attends to; `own`: that of the tokens up to itself."""
    return own if cache.LastVisible is None else v.let(cache.last(row) + 1 - seen.first)


def _seen_by(end: Any, own: Any, page: Any, spec: AttentionSpec) -> Any:
    """Emit the mask of a page's 16 tokens that a row attends to: tokens before `end`.

    A window has the last ones before `own`, and those from there on.
    """
    token = T.ramp(T.int32(0), T.int32(1), 16)
    before = token < T.broadcast(end - page * PAGE, 16)
    if spec.window is None:
        return before
    return T.And(before, token >= T.broadcast(own - page * PAGE - spec.window, 16))


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
    bias = cache.Bias[head, place]
    return bias if scale == 1.0 else bias * v.splat(1.0 / scale, 16)


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


def _scale_weights(cache: Cache, group: QueryGroup, pages: Any, seen: Span, weights: Any) -> None:
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
    return [as_float(cache.Pages[page, 1, kv_head, 0, x], lanes, isa) for x in places]


def _add_values(
    isa: Isa,
    cache: Cache,
    sums: Sums,
    group: QueryGroup,
    pages: Any,
    block: Span,
    weights: Any,
    factors: Any,
) -> None:
    """Emit the sum of weight * value over the tokens for each query, merged into `sums.out`.

    A value that a row does not attend to is skipped, not multiplied by 0: it may be infinite.
    """
    seen, visible, window, start_of_first = block.seen, block.visible, block.window, block.start
    common = seen if group.rows == 1 else v.let(T.max(T.min(visible, seen), 0))
    # Beginning of the tokens that all rows attend to.
    begin_common = start_of_first
    if window is not None and group.rows > 1:
        begin_common = v.let(T.min(T.max(block.own + (group.rows - 1) - window, 0), seen))
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
                    sees = token < block.end_of(row)
                    if window is not None:
                        sees = T.And(sees, token >= block.own + (row - window))
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
                merged = joined(old, factors[0, k], new, factors[1, k], lanes, isa)
                T.buffer_store(sums.out, merged, [slot, span])
