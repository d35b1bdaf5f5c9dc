"""Causal attention over the paged cache, with the online softmax of Milakov and Gimelshein (2018).

In a page the keys lie transposed, [e, 16]: the scores of a query and its 16 tokens are then e
multiply-adds of whole vectors (`rope_append` writes them so; nobody else reads them). Query heads
of one key-value head go together through a page, as many as the registers hold.

A task is a tile of at most `TILE_ROWS` rows and one key-value head. It walks the pages that its
rows see, in ascending order; at each page every row that reaches it updates, for each query head of
the key-value head, its running maximum, its running sum and its accumulated output (kept in `out`
itself). A row therefore does the same operations whichever tile it is in. What a page holds beyond
a row's position is never added in: scores there are replaced, values there are not read.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.targets.kernels.specs import AttentionSpec

from . import vector as v
from .isa import Isa

TILE_ROWS = 8  # of a prompt that share one walk over the pages
# A decode step of a tiny model is shorter than a launch of the thread pool.
PARALLEL_WIDTH = 512  # heads * head_dim
LOWEST = -3.0e38


def attention(spec: AttentionSpec, isa: Isa) -> PrimFunc | None:
    """Kernel of `spec`; None if a page is not 16 tokens or a head not a multiple of 4 elements."""
    if spec.page_size != 16 or spec.head_dim % 4:
        return None
    h, g, e, page = spec.heads, spec.kv_heads, spec.head_dim, spec.page_size
    shared = h // g  # query heads of a kv head
    together = _together(shared, e, isa)
    loop = T.parallel if h * e >= PARALLEL_WIDTH else T.serial

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def paged_attention(
        q: T.handle,
        positions: T.handle,
        sequences: T.handle,
        query_indptr: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        pages: T.handle,
        out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        Q = T.match_buffer(q, (n, h, e), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Query = T.match_buffer(query_indptr, (r1,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        Pages = T.match_buffer(pages, (count, 2, g, page, e), spec.kv_dtype)
        Out = T.match_buffer(out, (n, h, e), "float32")
        # Short prompts and decode steps are cut finer, so that all threads have work.
        rows = T.max(T.min(n // 16, T.int64(TILE_ROWS)), T.int64(1))
        for task in loop(g * T.ceildiv(n, rows)):
            with T.sblock("task"):
                T.reads()
                T.writes()
                largest = T.sblock_alloc_buffer((TILE_ROWS * shared,), "float32")
                total = T.sblock_alloc_buffer((TILE_ROWS * shared, 16), "float32")
                first = T.sblock_alloc_buffer((1,), "int64")
                stop = T.sblock_alloc_buffer((1,), "int64")
                first[0] = task % T.ceildiv(n, rows) * rows
                stop[0] = first[0]
                # A tile may hold rows of several sequences: one run of rows after the other.
                while first[0] < T.min((task % T.ceildiv(n, rows) + 1) * rows, n):
                    stop[0] = T.min(
                        T.min((task % T.ceildiv(n, rows) + 1) * rows, n),
                        T.Cast("int64", Query[Sequence[first[0]] + 1]),
                    )
                    for i, s in T.grid(stop[0] - first[0], shared):
                        largest[i * shared + s] = T.float32(LOWEST)
                        total[i * shared + s, T.ramp(0, 1, 16)] = v.splat(0.0, 16)
                        _clear(Out, first[0] + i, task // T.ceildiv(n, rows) * shared + s)
                    for j in T.serial(Position[stop[0] - 1] // page + 1):
                        for i, t in T.grid(stop[0] - first[0], shared // together):
                            if Position[first[0] + i] >= j * page:
                                _visit_page(
                                    Q,
                                    Pages,
                                    Out,
                                    largest,
                                    total,
                                    i * shared + t * together,
                                    first[0] + i,
                                    task // T.ceildiv(n, rows),
                                    task // T.ceildiv(n, rows) * shared + t * together,
                                    together,
                                    Ids[Indptr[Sequence[first[0]]] + j],
                                    Position[first[0] + i] - j * page + 1,
                                    spec.scale,
                                    isa,
                                )
                    for i, s in T.grid(stop[0] - first[0], shared):
                        _divide(
                            Out,
                            first[0] + i,
                            task // T.ceildiv(n, rows) * shared + s,
                            total,
                            i * shared + s,
                        )
                    first[0] = stop[0]

    return paged_attention


def _lanes(head_dim: int) -> int:
    return next(width for width in (16, 8, 4) if head_dim % width == 0)


def _clear(out: Any, row: Any, head: Any) -> None:
    """Emit out[row, head] = 0."""
    lanes = _lanes(int(out.shape[2]))
    for c in range(0, int(out.shape[2]), lanes):
        T.buffer_store(out, v.splat(0.0, lanes), [row, head, v.span(c, lanes)])


def _divide(out: Any, row: Any, head: Any, total: Any, slot: Any) -> None:
    """Emit out[row, head] /= sum(total[slot])."""
    lanes = _lanes(int(out.shape[2]))
    with T.sblock("divide"):
        T.reads()
        T.writes()
        inverse = v.let(T.float32(1) / v.sum_lanes(total[slot, v.span(0, 16)], 16))
        for c in range(0, int(out.shape[2]), lanes):
            index = [row, head, v.span(c, lanes)]
            T.buffer_store(out, out[tuple(index)] * v.splat(inverse, lanes), index)


def _together(shared: int, head_dim: int, isa: Isa) -> int:
    """How many query heads go through a page at once: their outputs stay in registers."""
    fitting = max(1, isa.accumulators * 2 // 3 // -(-head_dim // 16))
    return max(count for count in range(1, shared + 1) if shared % count == 0 and count <= fitting)


def _visit_page(
    Q: Any,
    Pages: Any,
    Out: Any,
    largest: Any,
    total: Any,
    slot: Any,
    row: Any,
    kv_head: Any,
    head: Any,
    count: int,
    page_id: Any,
    visible: Any,
    scale: float,
    isa: Isa,
) -> None:
    """Emit the update of a row's `count` heads by one page, of which `visible` tokens count."""
    ramp = v.span(0, 16)
    with T.sblock("visit"):
        T.reads()
        T.writes()
        weights = [T.sblock_alloc_buffer((16,), "float32") for _ in range(count)]
        factors = T.sblock_alloc_buffer((count,), "float32")  # of what was summed before
        seen = T.ramp(T.int32(0), T.int32(1), 16) < T.broadcast(T.Cast("int32", visible), 16)
        for k, raw in enumerate(_scores(Q, Pages, row, kv_head, head, count, page_id, isa)):
            scores = v.let(T.Select(seen, raw * v.splat(scale, 16), v.splat(LOWEST, 16)))
            old = v.let(largest[slot + k])
            top = v.let(v.maximum(v.max_lanes(scores, 16), old))
            T.buffer_store(largest, top, [slot + k])
            T.buffer_store(factors, v.exp(old - top, 1, isa.fma), [k])
            grown = v.exp(scores - v.splat(top, 16), 16, isa.fma)
            T.buffer_store(weights[k], T.Select(seen, grown, v.splat(0.0, 16)), [ramp])
            old_total = total[slot + k, v.span(0, 16)]
            added = v.fma(old_total, v.splat(factors[k], 16), weights[k][ramp], 16, isa.fma)
            T.buffer_store(total, added, [slot + k, ramp])
        _add_values(Pages, Out, row, kv_head, head, page_id, visible, weights, factors, isa)


def _scores(
    Q: Any, Pages: Any, row: Any, kv_head: Any, head: Any, count: int, page_id: Any, isa: Isa
) -> list[Any]:
    """Emit the dot products of `count` queries with the 16 keys of a page: 16 lanes for each."""
    e = int(Q.shape[2])
    # The additions of a query are dealt to chains, which hide the latency of the FMA.
    chains = next(c for c in (4, 2, 1) if e % c == 0 and (c * count <= isa.accumulators or c == 1))
    ramp = v.span(0, 16)
    sums = [[T.sblock_alloc_buffer((16,), "float32") for _ in range(chains)] for _ in range(count)]
    for chain in [c for each in sums for c in each]:
        T.buffer_store(chain, v.splat(0.0, 16), [ramp])
    with T.serial(e // chains) as block:
        for c in range(chains):
            d = block * chains + c
            key = T.Cast(v.float_type(16), Pages[page_id, 0, kv_head, 0, v.span(d * 16, 16)])
            for k in range(count):
                acc = sums[k][c]
                query = v.splat(Q[row, head + k, d], 16)
                T.buffer_store(acc, v.fma(query, key, acc[ramp], 16, isa.fma), [ramp])
    return [_tree([acc[ramp] for acc in each]) for each in sums]


def _tree(terms: list[Any]) -> Any:
    """Their sum, in pairs."""
    while len(terms) > 1:
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def _add_values(
    Pages: Any,
    Out: Any,
    row: Any,
    kv_head: Any,
    head: Any,
    page_id: Any,
    visible: Any,
    weights: list[Any],
    factors: Any,
    isa: Isa,
) -> None:
    """Emit, for each head, Out = Out * factor + sum over the visible tokens of weight * value."""
    e = int(Out.shape[2])
    lanes = _lanes(e)
    index = v.span(0, lanes)
    parts = range(e // lanes)
    sums = [[T.sblock_alloc_buffer((lanes,), "float32") for _ in parts] for _ in weights]
    for k, each in enumerate(sums):
        for c, acc in enumerate(each):
            old = Out[row, head + k, v.span(c * lanes, lanes)]
            T.buffer_store(acc, old * v.splat(factors[k], lanes), [index])
    with T.serial(T.min(T.Cast("int32", visible), 16)) as token:
        for c in parts:
            value = v.let(
                T.Cast(
                    v.float_type(lanes),
                    Pages[page_id, 1, kv_head, token, v.span(c * lanes, lanes)],
                )
            )
            for k, each in enumerate(sums):
                weight = v.splat(weights[k][token], lanes)
                added = v.fma(weight, value, each[c][index], lanes, isa.fma)
                T.buffer_store(each[c], added, [index])
    for k, each in enumerate(sums):
        for c, acc in enumerate(each):
            T.buffer_store(Out, acc[index], [row, head + k, v.span(c * lanes, lanes)])
