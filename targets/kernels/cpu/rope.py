"""Rotary embedding of q and k, and the append of k and v to the paged cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.targets.kernels.specs import RopeAppendSpec

from . import vector as v
from .isa import Isa
from .norm import inverse_rms
from .tiles import each_row

Load = Callable[[Any, int], Any]  # (first element of the head, lanes) -> vector
Store = Callable[[Any, int, Any], None]


def rope_append(spec: RopeAppendSpec, isa: Isa) -> PrimFunc:
    """Kernel of `spec`; see `KernelSet.rope_append` for the parameters."""
    if spec.qk_norm_eps is None:
        return _plain(spec, isa)
    return _with_norm(spec, isa)


def _plain(spec: RopeAppendSpec, isa: Isa) -> PrimFunc:
    h, g, e = spec.heads, spec.kv_heads, spec.head_dim

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def rotate(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        pages: T.handle,
        q_out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, h + 2 * g, e), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        Pages = T.match_buffer(pages, (count, 2, g, spec.page_size, e), spec.kv_dtype)
        Q = T.match_buffer(q_out, (n, h, e), "float32")
        tables = (Position, Sequence, Indptr, Ids)
        each_row(n, 4 * (h + 2 * g) * e, lambda i: _row(spec, isa, X, tables, (), Pages, Q, i))

    return rotate


def _with_norm(spec: RopeAppendSpec, isa: Isa) -> PrimFunc:
    h, g, e = spec.heads, spec.kv_heads, spec.head_dim

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def rotate_normed(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        q_norm: T.handle,
        k_norm: T.handle,
        pages: T.handle,
        q_out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, h + 2 * g, e), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        QNorm = T.match_buffer(q_norm, (e,), "float32")
        KNorm = T.match_buffer(k_norm, (e,), "float32")
        Pages = T.match_buffer(pages, (count, 2, g, spec.page_size, e), spec.kv_dtype)
        Q = T.match_buffer(q_out, (n, h, e), "float32")
        tables = (Position, Sequence, Indptr, Ids)
        norms = (QNorm, KNorm)
        each_row(n, 8 * (h + 2 * g) * e, lambda i: _row(spec, isa, X, tables, norms, Pages, Q, i))

    return rotate_normed


def _row(
    spec: RopeAppendSpec,
    isa: Isa,
    X: Any,
    tables: tuple[Any, ...],
    norms: tuple[Any, ...],
    Pages: Any,
    Q: Any,
    row: Any,
) -> None:
    """Emit one row: its angles once, then all its heads."""
    h, g, e = spec.heads, spec.kv_heads, spec.head_dim
    lanes = 16 if e % 16 == 0 else 1
    positions, sequences, indptr, ids = tables
    position = v.let(positions[row])
    page = v.let(ids[indptr[sequences[row]] + position // spec.page_size])
    slot = v.let(position % spec.page_size)
    cos, sin = _angles(spec, isa, position)

    def heads(count: int, first: int, emit: Callable[[Any, Load], None]) -> None:
        with T.serial(count) as head, T.sblock("head"):
            T.reads()
            T.writes()
            emit(head, lambda c, width: X[row, first + head, v.span(c, width)])

    def stored(width: int, x: Any) -> Any:
        return x if spec.kv_dtype == "float32" else T.Cast(_half_type(width), x)

    def to_keys(head: Any) -> Store:
        """Keys lie transposed in a page, [e, 16], see attention.py."""

        def store(c: Any, width: int, x: Any) -> None:
            first = c * spec.page_size + slot
            places = first if width == 1 else T.ramp(first, spec.page_size, width)
            T.buffer_store(Pages, stored(width, x), [page, 0, head, 0, places])

        return store

    def to_values(head: Any) -> Store:
        def store(c: Any, width: int, x: Any) -> None:
            T.buffer_store(Pages, stored(width, x), [page, 1, head, slot, v.span(c, width)])

        return store

    def query(head: Any, load: Load) -> None:
        load = _normed(spec, load, norms[0], isa) if norms else load
        index = [row, head]
        _rotate(
            spec, load, lambda c, w, x: T.buffer_store(Q, x, [*index, v.span(c, w)]), cos, sin, isa
        )

    def key(head: Any, load: Load) -> None:
        load = _normed(spec, load, norms[1], isa) if norms else load
        _rotate(spec, load, to_keys(head), cos, sin, isa)

    def value(head: Any, load: Load) -> None:
        store = to_values(head)
        with T.serial(e // lanes) as c:
            store(c * lanes, lanes, load(c * lanes, lanes))

    heads(h, 0, query)
    heads(g, h, key)
    heads(g, h + g, value)


def _half_type(lanes: int) -> str:
    return "float16" if lanes == 1 else f"float16x{lanes}"


def _normed(spec: RopeAppendSpec, load: Load, weight: Any, isa: Isa) -> Load:
    """Emit the RMS of a head; returns a load of the normed head."""
    assert spec.qk_norm_eps is not None
    inverse = inverse_rms(spec.head_dim, load, spec.qk_norm_eps, isa)
    return lambda c, lanes: load(c, lanes) * v.splat(inverse, lanes) * weight[v.span(c, lanes)]


def _angles(spec: RopeAppendSpec, isa: Isa, position: Any) -> tuple[Any, Any]:
    """Emit cos and sin of position * inv_freq, times `scaling`; buffers of 16 * k elements."""
    count = -(-len(spec.inv_freq) // 16)
    frequencies = (*spec.inv_freq, *[0.0] * (count * 16 - len(spec.inv_freq)))
    cos = T.sblock_alloc_buffer((count * 16,), "float32")
    sin = T.sblock_alloc_buffer((count * 16,), "float32")
    x = v.let(T.Cast("float32", position))
    for start in range(0, count * 16, 16):
        constants = v.shuffle([T.float32(f) for f in frequencies[start : start + 16]], [*range(16)])
        pair = v.cos_sin(v.splat(x, 16) * constants, 16, isa.fma)
        for buffer, value in zip((cos, sin), pair, strict=True):
            scaled = value if spec.scaling == 1.0 else value * v.splat(spec.scaling, 16)
            T.buffer_store(buffer, scaled, [v.span(start, 16)])
    return cos, sin


def _rotate(spec: RopeAppendSpec, load: Load, store: Store, cos: Any, sin: Any, isa: Isa) -> None:
    """Emit the rotation of one head, and the copy of what lies beyond `rotary_dim`."""
    half = spec.rotary_dim // 2
    lanes = next(width for width in (16, 8, 4, 2, 1) if half % width == 0)
    with T.serial(half // lanes) as i, T.sblock("rotate"):
        T.reads()
        T.writes()
        start = i * lanes
        x, y = v.let(load(start, lanes)), v.let(load(half + start, lanes))
        c, s = cos[v.span(start, lanes)], sin[v.span(start, lanes)]
        store(start, lanes, v.fma(x, c, v.splat(0.0, lanes) - y * s, lanes, isa.fma))
        store(half + start, lanes, v.fma(y, c, x * s, lanes, isa.fma))
    with T.serial(spec.head_dim - spec.rotary_dim) as i:
        store(spec.rotary_dim + i, 1, load(spec.rotary_dim + i, 1))
