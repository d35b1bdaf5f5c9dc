"""Rotary embedding of q and k, and the append of k and v to the paged cache, on CPUs.

The heads of a row are normalized together: the sums of squares of 16 heads are one vector. A page
has transposed keys, [e, 16] (attention.py), so a single row scatters its key. Where 16 rows of a
batch fill a page, the first of them processes all: their keys are collected in a block [16, g, e]
(int16 for caches of integers, kv_integers.py), and stored by transpositions of 16 x 16 elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import RopeAppendSpec, script

from . import vector as v
from .isa import Isa
from .kv_integers import Block, Integers
from .norm import head_norms
from .tiles import each_row

PAGE = 16  # tokens of a page


def rope_append(spec: RopeAppendSpec, isa: Isa) -> PrimFunc | None:
    """Return the kernel of `KernelSet.rope_append`; None where `attention` is None, too."""
    if spec.page_size != PAGE or spec.head_dim % 4:
        return None
    if spec.qk_norm_eps is None:
        return _plain(spec, isa)
    return _with_norm(spec, isa)


def _plain(spec: RopeAppendSpec, isa: Isa) -> PrimFunc:
    h, e = spec.heads, spec.head_dim

    @script.prim_func(s_tir=True, private=True)
    def rotate(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        rope_positions: T.handle,
        pages: T.handle,
        q_out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, spec.qkv_heads, e), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        Pages = T.match_buffer(pages, (count, *spec.page_shape), spec.page_dtype)
        Q = T.match_buffer(q_out, (n, h, e), "float32")
        Axes = T.match_buffer(rope_positions, (n, 3), "int32")
        _emitter(spec, isa, X, Position, Sequence, Indptr, Ids, Axes, Pages, Q).emit(n)

    return _with_axes(rotate, spec)


def _with_norm(spec: RopeAppendSpec, isa: Isa) -> PrimFunc:
    h, e = spec.heads, spec.head_dim

    @script.prim_func(s_tir=True, private=True)
    def rotate_normed(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        rope_positions: T.handle,
        q_norm: T.handle,
        k_norm: T.handle,
        pages: T.handle,
        q_out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, spec.qkv_heads, e), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        QNorm = T.match_buffer(q_norm, (e,), "float32")
        KNorm = T.match_buffer(k_norm, (e,), "float32")
        Pages = T.match_buffer(pages, (count, *spec.page_shape), spec.page_dtype)
        Q = T.match_buffer(q_out, (n, h, e), "float32")
        Axes = T.match_buffer(rope_positions, (n, 3), "int32")
        first = (X, Position, Sequence, Indptr, Ids, Axes, Pages, Q)
        _emitter(spec, isa, *first, QNorm, KNorm).emit(n)

    return _with_axes(rotate_normed, spec)


def _with_axes(func: PrimFunc, spec: RopeAppendSpec) -> PrimFunc:
    """Return a kernel without the positions of M-RoPE, its sixth parameter, if it reads none."""
    if spec.axes:
        return func
    params = [param for i, param in enumerate(func.params) if i != 5]
    return PrimFunc(params, func.body, func.ret_type, func.attrs)


def _emitter(spec: RopeAppendSpec, isa: Isa, *buffers: Any) -> _Emitter:
    x, position, sequence, indptr, ids, axes, pages, q, *norms = buffers
    return _Emitter(spec, isa, x, position, sequence, indptr, ids, axes, pages, q, tuple(norms))


@dataclass(frozen=True, slots=True)
class _Emitter:
    """Emits the RoPE-append kernel; its fields are the kernel's buffers."""

    spec: RopeAppendSpec
    isa: Isa
    X: Any
    Position: Any
    Sequence: Any
    Indptr: Any
    Ids: Any
    Axes: Any  # positions of M-RoPE
    Pages: Any
    Q: Any
    norms: tuple[Any, ...]  # weights of the norms of q and k; () without norms

    def emit(self, n: Any) -> None:
        """Emit the kernel for `n` rows."""
        spec = self.spec
        cost = 8 if self.norms else 4

        def pages(row: Any) -> None:
            self._row_or_page(row, n)

        each_row(
            n,
            cost * spec.qkv_heads * spec.head_dim,
            self._single if spec.head_dim % PAGE or spec.kv == "none" else pages,
        )

    def _row_or_page(self, row: Any, n: Any) -> None:
        """Emit one row, or a whole page of rows.

        A row that is the first of its page emits all 16 rows if the batch has all of them; the
        other rows of the page then emit nothing.
        """
        slot = v.let(self.Position[row] % PAGE)
        first = v.let(row - T.Cast("int64", slot))
        last = v.let(first + (PAGE - 1))
        # Rows of a sequence are consecutive, and so are their positions: checking both ends
        # suffices.
        ends = (T.max(first, 0), T.min(last, n - 1))
        same = [self.Sequence[end] == self.Sequence[row] for end in ends]
        with T.If(T.And(T.And(first >= 0, last < n), T.And(*same))):
            with T.Then(), T.If(slot == 0), T.Then():
                self._page(row)
            with T.Else():
                self._single(row)

    def _single(self, row: Any) -> None:
        """Emit one row alone, whose keys are scattered into every 16th element of the page."""
        spec = self.spec
        with T.sblock("single"):
            T.reads()
            T.writes()
            if spec.kv == "none":
                self._queries(row, v.let(self.Position[row]))
                return
            keys = self._staging(1)
            page, slot = self._row(row, keys, 0)
            if integers := Integers.of(spec):
                with T.serial(spec.kv_heads) as head, T.serial(spec.head_dim // 2) as c:
                    pair = [keys[0, head, 2 * c + i] for i in (0, 1)]
                    integers.store_keys(Block(self.Pages, page, head), c, slot, pair, 1)
                return
            with T.serial(spec.kv_heads) as head, T.serial(spec.head_dim) as c:
                place = [page, 0, head, 0, c * PAGE + slot]
                T.buffer_store(self.Pages, keys[0, head, c], place)

    def _page(self, row: Any) -> None:
        """Emit the 16 rows from `row` on, which fill a page."""
        spec = self.spec
        with T.sblock("whole"):
            T.reads()
            T.writes()
            keys = self._staging(PAGE)
            with T.serial(PAGE) as i, T.sblock("row_of_page"):
                T.reads()
                T.writes()
                self._row(row + i, keys, i)
            page = v.let(self._page_of(row))
            with (
                T.serial(spec.kv_heads) as head,
                T.serial(spec.head_dim // PAGE) as c,
                T.sblock("transpose"),
            ):
                T.reads()
                T.writes()
                transposed = v.transposed(
                    [keys[i, head, v.span(c * PAGE, PAGE)] for i in range(PAGE)]
                )
                if integers := Integers.of(spec):
                    for j in range(0, PAGE, 2):
                        pair = c * (PAGE // 2) + j // 2
                        block = Block(self.Pages, page, head)
                        integers.store_keys(block, pair, 0, transposed[j : j + 2], PAGE)
                    return
                for j, key in enumerate(transposed):
                    place = [page, 0, head, 0, v.span((c * PAGE + j) * PAGE, PAGE)]
                    T.buffer_store(self.Pages, key, place)

    def _staging(self, rows: int) -> Any:
        """Allocate memory for keys of `rows` rows that are stored in the page later."""
        dtype = "int16" if Integers.of(self.spec) else self.spec.kv_dtype
        return T.sblock_alloc_buffer((rows, self.spec.kv_heads, self.spec.head_dim), dtype)

    def _page_of(self, row: Any) -> Any:
        return self.Ids[self.Indptr[self.Sequence[row]] + self.Position[row] // PAGE]

    def _row(self, row: Any, keys: Any, place: Any) -> tuple[Any, Any]:
        """Emit a row: its q, its value in the page, its keys in keys[place].

        Return page and slot.
        """
        spec, h, g = self.spec, self.spec.heads, self.spec.kv_heads
        position = v.let(self.Position[row])
        page, slot = v.let(self._page_of(row)), v.let(position % PAGE)
        cos, sin, inverse = self._queries(row, position)
        with T.serial(g) as head, T.sblock("key"):
            T.reads()
            T.writes()
            norm = self._norm(inverse, h + head, 1)
            if integers := Integers.of(spec):
                rotated = T.sblock_alloc_buffer((1, spec.head_dim), "float32")
                self._rotate(row, h + head, norm, cos, sin, (rotated, 0))

                def store(start: Any, lanes: int, value: Any) -> None:
                    code = v.cast(value, "int16", lanes)
                    T.buffer_store(keys, code, [place, head, v.span(start, lanes)])

                scale = integers.quantize_key(
                    lambda start, lanes: rotated[0, v.span(start, lanes)], store
                )
                integers.store_key_scale(Block(self.Pages, page, head), slot, scale)
            else:
                self._rotate(row, h + head, norm, cos, sin, (keys, place, head))
        with T.serial(g) as head, T.sblock("value"):
            T.reads()
            T.writes()
            source = spec.first_value + head
            factor = v.let(inverse[source]) if spec.v_norm else None
            self._value(row, source, page, head, slot, factor)
        return page, slot

    def _queries(self, row: Any, position: Any) -> tuple[Any, Any, Any]:
        """Emit a row's q; return cos and sin of its position and inverse norms of its heads."""
        spec = self.spec
        positions = (position,)
        if spec.axes:
            positions = tuple(v.let(self.Axes[row, axis]) for axis in range(3))
        cos, sin = _angles(spec, self.isa, positions)
        inverse = None
        if spec.qk_norm_eps is not None:
            all_heads = spec.v_norm or spec.kv != "both"
            normed = spec.qkv_heads if all_heads else spec.first_value
            inverse = head_norms(self.X, row, normed, spec.qk_norm_eps, self.isa)
        with T.serial(spec.heads) as head, T.sblock("query"):
            T.reads()
            T.writes()
            self._rotate(row, head, self._norm(inverse, head, 0), cos, sin, (self.Q, row, head))
        return cos, sin, inverse

    @staticmethod
    def _norm(inverse: Any, head: Any, which: int) -> tuple[Any, int] | None:
        return None if inverse is None else (inverse[head], which)

    def _value(self, row: Any, source: Any, page: Any, head: Any, slot: Any, factor: Any) -> None:
        """Emit the copy of head `source` of qkv into the cache, as a value, times `factor`."""

        def load(start: Any, lanes: int) -> Any:
            value = self.X[row, source, v.span(start, lanes)]
            return value if factor is None else value * v.splat(factor, lanes)

        if integers := Integers.of(self.spec):
            integers.store_value(Block(self.Pages, page, head), slot, load)
            return
        lanes = v.widest(self.spec.head_dim)
        with T.serial(self.spec.head_dim // lanes) as c:
            stored = v.cast(load(c * lanes, lanes), self.spec.kv_dtype, lanes)
            place = [page, 1, head, 0, v.span(slot * self.spec.head_dim + c * lanes, lanes)]
            T.buffer_store(self.Pages, stored, place)

    def _rotate(
        self, row: Any, head: Any, norm: tuple[Any, int] | None, cos: Any, sin: Any, to: Any
    ) -> None:
        """Emit norm and rotation of a head, and the copy of its elements beyond `rotary_dim`."""
        half, (out, *place) = self.spec.rotary_dim // 2, to
        factor, weight = (v.let(norm[0]), self.norms[norm[1]]) if norm else (None, {})
        last = self.spec.norm_last

        def load(start: Any, lanes: int) -> Any:
            span = v.span(start, lanes)
            x = self.X[row, head, span]
            if not norm:
                return v.let(x)
            x = x * v.splat(factor, lanes)
            return v.let(x if last else x * weight[span])

        def store(start: Any, lanes: int, x: Any) -> None:
            x = x * weight[v.span(start, lanes)] if last else x
            value = v.cast(x, str(out.dtype), lanes)
            T.buffer_store(out, value, [*place, v.span(start, lanes)])

        if half:
            lanes = v.widest(half)
            with T.serial(half // lanes) as i, T.sblock("rotate"):
                T.reads()
                T.writes()
                start = i * lanes
                x, y = load(start, lanes), load(half + start, lanes)
                c, s = cos[v.span(start, lanes)], sin[v.span(start, lanes)]
                store(start, lanes, v.fma(x, c, v.splat(0.0, lanes) - y * s, lanes, self.isa.fma))
                store(half + start, lanes, v.fma(y, c, x * s, lanes, self.isa.fma))
        if rest := self.spec.head_dim - 2 * half:
            wide = v.widest(rest)
            with T.serial(rest // wide) as i, T.sblock("rest"):
                T.reads()
                T.writes()
                start = 2 * half + i * wide
                store(start, wide, load(start, wide))


def _angles(spec: RopeAppendSpec, isa: Isa, positions: Sequence[Any]) -> tuple[Any, Any]:
    """Emit cos and sin of position * inv_freq, times `scaling`, into buffers of 16 * k elements.

    With `axes` there are three positions, one for each axis.
    """
    count = -(-len(spec.inv_freq) // 16)
    if not count:
        return None, None
    frequencies = (*spec.inv_freq, *[0.0] * (count * 16 - len(spec.inv_freq)))
    cos = T.sblock_alloc_buffer((count * 16,), "float32")
    sin = T.sblock_alloc_buffer((count * 16,), "float32")
    x = [v.let(T.Cast("float32", position)) for position in positions]
    axes = (*spec.axes, *[0] * (count * 16 - len(spec.axes)))
    for start in range(0, count * 16, 16):
        constants = v.shuffle([T.float32(f) for f in frequencies[start : start + 16]], [*range(16)])
        turned = v.splat(x[0], 16)
        if spec.axes:
            turned = v.shuffle([x[axis] for axis in axes[start : start + 16]], [*range(16)])
        pair = v.cos_sin(turned * constants, 16, isa.fma)
        for buffer, value in zip((cos, sin), pair, strict=True):
            scaled = value if spec.scaling == 1.0 else value * v.splat(spec.scaling, 16)
            T.buffer_store(buffer, scaled, [v.span(start, 16)])
    return cos, sin
