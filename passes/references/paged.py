"""Reference PrimFuncs of the operations that Relax has no operator for: slow, simple, portable.

Each has two attributes, `wherry.op` (its name) and `wherry.spec` (its static parameters, JSON): a
target's kernel set may replace it by a PrimFunc of the same signature. The arguments that describe
the batch are those of `forward`, see docs/design/compiled-library.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tvm import tirx
from tvm.script import tirx as T

from wherry.ops import INTEGERS, AttentionSpec, RopeAppendSpec, script, value_group
from wherry.ops.tags import tag

# Names of axes in this file: n rows, r sequences, h query heads, g kv heads, e head dim, j
# frequencies.


Place = tuple[Any, Any, Any]  # page, KV head and slot of a token


def _store(buffer: tirx.Buffer, values: list[float]) -> None:
    """Emit a store of each constant; called while TVMScript is parsed."""
    for j, value in enumerate(values):
        T.buffer_store(buffer, T.float32(value), [j])


def _integer(x: tirx.PrimExpr, largest: tirx.PrimExpr, most: int) -> tirx.PrimExpr:
    """Quantize x to int32 by the scale most / largest; called while TVMScript is parsed."""
    return T.Cast("int32", T.nearbyint(x * (T.float32(most) / largest)))


def _upper(x: tirx.PrimExpr, negative: int) -> tirx.PrimExpr:
    """Return the bits of a float32 rounded to its upper 16 bits, an int32.

    Positive numbers are rounded up, or with `negative` -1 all numbers down.
    """
    bits = T.reinterpret("int32", x)
    away = T.bitwise_xor(T.shift_right(bits, T.int32(31)), T.int32(~negative))
    return T.bitwise_and(bits + T.bitwise_and(away, T.int32(0xFFFF)), T.int32(-(2**16)))


def _fours(x: tirx.PrimExpr, least: tirx.PrimExpr, scale: tirx.PrimExpr) -> tirx.PrimExpr:
    """Quantize x to 0 to 15, an int32; called while TVMScript is parsed."""
    minimum, step = (T.reinterpret("float32", bits) for bits in (least, scale))
    inverse = T.Select(step > T.float32(1e-30), T.float32(1) / step, T.float32(0))
    return T.Cast("int32", T.nearbyint((x - minimum) * inverse))


def _byte(pages: tirx.Buffer, at: Place, i: tirx.PrimExpr) -> tirx.PrimExpr:
    """Load byte i of a token and head, in pages of integers, as an int32 from 0 to 255."""
    page, head, slot = at
    if str(pages.dtype) != "uint32":
        return T.Cast("int32", pages[page, 0, head, slot, i]) & 255
    word = T.reinterpret("int32", pages[page, 0, head, slot, i // 4])
    return T.shift_right(word, T.int32(8) * (i % 4)) & 255


def _put_byte(pages: tirx.Buffer, at: Place, i: tirx.PrimExpr, byte: tirx.PrimExpr) -> None:
    """Store the lower 8 bits of an int32; called while TVMScript is parsed."""
    page, head, slot = at
    if str(pages.dtype) != "uint32":
        T.buffer_store(pages, T.Cast(str(pages.dtype), byte), [page, 0, head, slot, i])
        return
    word = T.reinterpret("int32", pages[page, 0, head, slot, i // 4])
    shift = T.int32(8) * (i % 4)
    others = T.bitwise_and(word, T.bitwise_not(T.shift_left(T.int32(255), shift)))
    updated = T.bitwise_or(others, T.shift_left(T.bitwise_and(byte, T.int32(255)), shift))
    T.buffer_store(pages, T.reinterpret("uint32", updated), [page, 0, head, slot, i // 4])


def _four_bytes(pages: tirx.Buffer, at: Place, i: tirx.PrimExpr, dtype: str) -> tirx.PrimExpr:
    """Load four bytes from byte i on."""
    page, head, slot = at
    words = str(pages.dtype) == "uint32"
    return T.reinterpret(dtype, pages[page, 0, head, slot, i // 4 if words else T.ramp(i, 1, 4)])


def _put_four(pages: tirx.Buffer, at: Place, i: tirx.PrimExpr, x: tirx.PrimExpr) -> None:
    """Store four bytes from byte i on; called while TVMScript is parsed."""
    page, head, slot = at
    words, dtype = str(pages.dtype) == "uint32", str(pages.dtype)
    place = [page, 0, head, slot, i // 4 if words else T.ramp(i, 1, 4)]
    T.buffer_store(pages, T.reinterpret(dtype if words else f"{dtype}x4", x), place)


def _load(
    spec: AttentionSpec, pages: tirx.Buffer, at: Place, which: int, k: tirx.PrimExpr
) -> tirx.PrimExpr:
    """Load an element of a key (which = 0) or value (1) as float32, while TVMScript is parsed."""
    page, head, slot = at
    if spec.kv_dtype not in INTEGERS:
        return T.Cast("float32", pages[page, min(which, int(pages.shape[1]) - 1), head, slot, k])
    e = spec.head_dim
    if spec.kv_dtype == "int4" and which:
        return _load_four(e, pages, at, k)
    wide = spec.kv_dtype == "int8" and not which  # 12 bits
    begin = e + e // 2 + 4 if which else 0
    number = T.bitwise_xor(_byte(pages, at, begin + k), T.int32(128)) - 128
    if wide:
        number = number * 16 + ((_byte(pages, at, e + k // 2) >> (k % 2 * 4)) & 15)
    scale = _four_bytes(pages, at, begin + (e + e // 2 if wide else e), "float32")
    return T.Cast("float32", number) * scale


def _load_four(e: int, pages: tirx.Buffer, at: Place, k: tirx.PrimExpr) -> tirx.PrimExpr:
    """Load an element of an int4 value as float32, while TVMScript is parsed."""
    size = value_group(e)
    both = _byte(pages, at, e + 4 + _byte_of(size, k))
    number = T.Cast("float32", (both >> (k % size // (size // 2) * 4)) & 15)
    bits = _four_bytes(pages, at, e + 4 + e // 2 + k // size * 4, "int32")
    scale = T.reinterpret("float32", T.shift_left(bits, T.int32(16)))
    minimum = T.reinterpret("float32", T.bitwise_and(bits, T.int32(-(2**16))))
    return number * scale + minimum


def _byte_of(size: int, k: tirx.PrimExpr) -> tirx.PrimExpr:
    """Return the byte of element k of an int4 value, in groups of `size` elements."""
    return k // size * (size // 2) + k % (size // 2)


def _number(values: tuple[int, ...], index: tirx.PrimExpr) -> tirx.PrimExpr:
    """Return values[index], by comparisons; called while TVMScript is parsed."""
    if len(set(values)) == 1:
        return T.int32(values[0])
    middle = len(values) // 2
    below, above = _number(values[:middle], index), _number(values[middle:], index - middle)
    return T.if_then_else(index < middle, below, above)


@cache  # one PrimFunc per layer shape: parsing takes longer than all passes
def rope_append(spec: RopeAppendSpec, dtype: str = "float32") -> tirx.PrimFunc:
    """Return the PrimFunc that rotates Q and K, appends K and V to the cache, and returns Q.

    (qkv dtype [n, qkv_heads, e], positions, sequences, page_indptr, page_ids, [rope_positions int32
    [n, 3]], [q_norm, k_norm dtype [e]], pages page_dtype [pages, *page_shape] in place) -> q dtype
    [n, h, e]

    Positions on three axes are an argument if the spec has `axes`, the norms if `qk_norm_eps` is
    set. The rotation is Hugging Face's half-split one.
    """
    h, g, e, half = spec.heads, spec.kv_heads, spec.head_dim, len(spec.inv_freq)
    page, page_size, kv_dtype = spec.page_shape, spec.page_size, spec.kv_dtype
    stored = spec.page_dtype
    size = value_group(e) if kv_dtype == "int4" else e
    freqs, scaling, planes = list(spec.inv_freq), spec.scaling, spec.planes
    normed, norm_last, v_norm = spec.qk_norm_eps is not None, spec.norm_last, spec.v_norm
    eps = spec.qk_norm_eps or 0.0
    width, first_value = spec.qkv_heads, spec.first_value
    keys = values = 0 if spec.kv == "none" else g
    first = not norm_last

    def turned(
        positions: tirx.Buffer, by_axis: tirx.Buffer, i: tirx.PrimExpr, j: tirx.PrimExpr
    ) -> tirx.PrimExpr:
        """Return the position by which a row's frequency j turns."""
        position = by_axis[i, _number(spec.axes, j)] if spec.axes else positions[i]
        return T.Cast("float32", position)

    def weight(
        q_norm: tirx.Buffer, k_norm: tirx.Buffer, head: tirx.PrimExpr, k: tirx.PrimExpr, now: bool
    ) -> tirx.PrimExpr:
        if not now:
            return T.float32(1)
        return T.Cast("float32", T.if_then_else(head < h, q_norm[k], k_norm[k]))

    @script.macro
    def find_largest(y, total):
        total[0] = T.float32(1e-30)
        for k in T.serial(e):
            total[0] = T.max(total[0], T.abs(y[k]))

    @script.macro
    def append_bytes(pages, page, head, slot, y, total, first, most):
        find_largest(y, total)
        for k in T.serial(e):
            _put_byte(pages, (page, head, slot), first + k, _integer(y[k], total[0], most))
        _put_four(pages, (page, head, slot), first + e, total[0] * T.float32(1 / most))

    @script.macro
    def append_key(pages, page, head, slot, y, total):
        if kv_dtype == "int8":
            find_largest(y, total)
            for k in T.serial(e):
                _put_byte(pages, (page, head, slot), k, _integer(y[k], total[0], 2047) >> 4)
            for k in T.serial(e // 2):
                _put_byte(
                    pages,
                    (page, head, slot),
                    e + k,
                    (_integer(y[2 * k], total[0], 2047) & 15)
                    | ((_integer(y[2 * k + 1], total[0], 2047) & 15) << 4),
                )
            _put_four(pages, (page, head, slot), e + e // 2, total[0] * T.float32(1 / 2047))
        elif kv_dtype == "int4":
            append_bytes(pages, page, head, slot, y, total, 0, 127)
        else:
            for k in T.serial(e):
                pages[page, 0, head, slot, k] = T.Cast(kv_dtype, y[k])

    @script.macro
    def append_group(pages, page, head, slot, y, i, bits):
        with T.sblock("group"):
            T.reads()
            T.writes()
            ends = T.sblock_alloc_buffer((2,), "float32")  # least and largest element
            ends[0] = y[i * size]
            ends[1] = y[i * size]
            for k in T.serial(size):
                ends[0] = T.min(ends[0], y[i * size + k])
                ends[1] = T.max(ends[1], y[i * size + k])
            bits[0] = _upper(ends[0], -1)
            bits[1] = _upper((ends[1] - T.reinterpret("float32", bits[0])) * T.float32(1 / 15), 0)
            for k in T.serial(size // 2):
                _put_byte(
                    pages,
                    (page, head, slot),
                    e + 4 + _byte_of(size, i * size + k),
                    _fours(y[i * size + k], bits[0], bits[1])
                    | (_fours(y[i * size + size // 2 + k], bits[0], bits[1]) << 4),
                )
            _put_four(pages, (page, head, slot), e + 4 + e // 2 + i * 4, bits[0] | (bits[1] >> 16))

    @script.macro
    def append_value(pages, page, head, slot, y, total, bits):
        if kv_dtype == "int8":
            append_bytes(pages, page, head, slot, y, total, e + e // 2 + 4, 127)
        elif kv_dtype == "int4":
            for i in T.serial(e // size):
                append_group(pages, page, head, slot, y, i, bits)
        elif planes == 2:
            for k in T.serial(e):
                pages[page, 1, head, slot, k] = T.Cast(kv_dtype, y[k])

    @script.macro
    def body(
        qkv, positions, sequences, page_indptr, page_ids, by_axis, q_norm, k_norm, pages, q_out, n
    ):
        for i in T.serial(n):
            with T.sblock("row"):
                T.reads()
                T.writes()
                freq = T.sblock_alloc_buffer((max(half, 1),), "float32")
                x = T.sblock_alloc_buffer((e,), "float32")
                y = T.sblock_alloc_buffer((e,), "float32")
                total = T.sblock_alloc_buffer((1,), "float32")
                bits = T.sblock_alloc_buffer((2,), "int32")
                _store(freq, freqs)
                for head in T.serial(h + keys):
                    for k in T.serial(e):
                        x[k] = T.Cast("float32", qkv[i, head, k])
                    if normed:
                        total[0] = T.float32(0)
                        for k in T.serial(e):
                            total[0] = total[0] + x[k] * x[k]
                        for k in T.serial(e):
                            x[k] = (
                                x[k]
                                * T.rsqrt(total[0] / T.float32(e) + T.float32(eps))
                                * weight(q_norm, k_norm, head, k, first)
                            )
                    for k in T.serial(e):
                        y[k] = x[k]
                    for j in T.serial(half):
                        y[j] = T.float32(scaling) * (
                            x[j] * T.cos(turned(positions, by_axis, i, j) * freq[j])
                            - x[j + half] * T.sin(turned(positions, by_axis, i, j) * freq[j])
                        )
                        y[j + half] = T.float32(scaling) * (
                            x[j + half] * T.cos(turned(positions, by_axis, i, j) * freq[j])
                            + x[j] * T.sin(turned(positions, by_axis, i, j) * freq[j])
                        )
                    if norm_last:
                        for k in T.serial(e):
                            y[k] = y[k] * weight(q_norm, k_norm, head, k, True)
                    if head < h:
                        for k in T.serial(e):
                            q_out[i, head, k] = T.Cast(dtype, y[k])
                    else:
                        append_key(
                            pages,
                            page_ids[page_indptr[sequences[i]] + positions[i] // page_size],
                            head - h,
                            positions[i] % page_size,
                            y,
                            total,
                        )
                for head in T.serial(values):
                    for k in T.serial(e):
                        y[k] = T.Cast("float32", qkv[i, first_value + head, k])
                    if v_norm:
                        total[0] = T.float32(0)
                        for k in T.serial(e):
                            total[0] = total[0] + y[k] * y[k]
                        for k in T.serial(e):
                            y[k] = y[k] * T.rsqrt(total[0] / T.float32(e) + T.float32(eps))
                    append_value(
                        pages,
                        page_ids[page_indptr[sequences[i]] + positions[i] // page_size],
                        head,
                        positions[i] % page_size,
                        y,
                        total,
                        bits,
                    )

    @script.prim_func(s_tir=True, private=True)
    def func(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        rope_positions: T.handle,
        q_norm: T.Buffer((e,), dtype),
        k_norm: T.Buffer((e,), dtype),
        pages: T.handle,
        q_out: T.handle,
    ):
        n, r1, p, all_pages = T.int64(), T.int64(), T.int64(), T.int64()
        QKV = T.match_buffer(qkv, (n, width, e), dtype)
        POS = T.match_buffer(positions, (n,), "int32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        PTR = T.match_buffer(page_indptr, (r1,), "int32")
        IDS = T.match_buffer(page_ids, (p,), "int32")
        AXES = T.match_buffer(rope_positions, (n, 3), "int32")
        PAGES = T.match_buffer(pages, (all_pages, *page), stored)
        Q = T.match_buffer(q_out, (n, h, e), dtype)
        body(QKV, POS, SEQ, PTR, IDS, AXES, q_norm, k_norm, PAGES, Q, n)

    unused = (*(() if spec.axes else (5,)), *(() if normed else (6, 7)))
    return tag(_without(func, *unused), "rope_append", spec)


def _without(func: tirx.PrimFunc, *unused: int) -> tirx.PrimFunc:
    """Return `func` without the parameters at indices `unused`, which its body ignores."""
    params = [param for i, param in enumerate(func.params) if i not in unused]
    return tirx.PrimFunc(params, func.body, func.ret_type, func.attrs)


@cache
def attention(spec: AttentionSpec, dtype: str = "float32") -> tirx.PrimFunc:
    """Return the PrimFunc of causal attention of each row over its sequence's cache.

    (q dtype [n, h, e], positions, sequences, query_indptr, page_indptr, page_ids, last_visible if
    the spec has it, sinks float32 [h] and biases float32 [h, reach + 1] if there are any, pages
    page_dtype [pages, *page_shape]) -> dtype [n, h, e]

    `AttentionSpec` explains windows, sinks, biases, scales and `last_visible`.
    """
    h, g, e = spec.heads, spec.kv_heads, spec.head_dim
    page, page_size, stored = spec.page_shape, spec.page_size, spec.page_dtype
    scale, softcap, has_sinks = spec.scale, spec.softcap, spec.sinks
    group = h // g
    reach = spec.window or 2**31 - 1  # tokens that a row attends to
    slopes, sloped = list(spec.slopes), bool(spec.slopes)
    farthest, biased = spec.reach or 0, spec.reach is not None

    def last(positions: tirx.Buffer, visible: tirx.Buffer, i: tirx.PrimExpr) -> tirx.PrimExpr:
        """Return the last position that row i attends to."""
        return visible[i] if spec.last_visible else positions[i]

    @script.prim_func(s_tir=True, private=True)
    def func(
        q: T.handle,
        positions: T.handle,
        sequences: T.handle,
        query_indptr: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        last_visible: T.handle,
        sinks: T.Buffer((h,), "float32"),
        bias: T.Buffer((h, farthest + 1), "float32"),
        pages: T.handle,
        out: T.handle,
    ):
        n, r1, r2, p, all_pages = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
        Q = T.match_buffer(q, (n, h, e), dtype)
        POS = T.match_buffer(positions, (n,), "int32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        T.match_buffer(query_indptr, (r1,), "int32")
        PTR = T.match_buffer(page_indptr, (r2,), "int32")
        IDS = T.match_buffer(page_ids, (p,), "int32")
        VISIBLE = T.match_buffer(last_visible, (n,), "int32")
        PAGES = T.match_buffer(pages, (all_pages, *page), stored)
        OUT = T.match_buffer(out, (n, h, e), dtype)
        for i, head in T.grid(n, h):
            with T.sblock("row_head"):
                T.reads()
                T.writes()
                acc = T.sblock_alloc_buffer((e,), "float32")
                # online softmax: maximum, sum, score, correction factor
                state = T.sblock_alloc_buffer((4,), "float32")
                slope = T.sblock_alloc_buffer((max(len(slopes), 1),), "float32")
                _store(slope, slopes)
                state[0] = sinks[head] if has_sinks else T.float32(-3.0e38)
                state[1] = T.float32(1 if has_sinks else 0)
                for k in T.serial(e):
                    acc[k] = T.float32(0)
                first = T.max(POS[i] + 1 - reach, 0)
                for after in T.serial(last(POS, VISIBLE, i) + 1 - first):
                    t = first + after
                    state[2] = T.float32(0)
                    for k in T.serial(e):
                        state[2] = state[2] + T.Cast("float32", Q[i, head, k]) * _load(
                            spec,
                            PAGES,
                            (IDS[PTR[SEQ[i]] + t // page_size], head // group, t % page_size),
                            0,
                            k,
                        )
                    state[2] = state[2] * T.float32(scale)
                    if softcap is not None:
                        state[2] = T.tanh(state[2] / T.float32(softcap)) * T.float32(softcap)
                    if biased:
                        state[2] = state[2] + bias[head, T.min(POS[i] - t, farthest)]
                    if sloped:
                        state[2] = state[2] + slope[head] * T.Cast("float32", t - POS[i])
                    state[3] = T.exp(state[0] - T.max(state[0], state[2]))
                    state[0] = T.max(state[0], state[2])
                    state[1] = state[1] * state[3] + T.exp(state[2] - state[0])
                    for k in T.serial(e):
                        acc[k] = acc[k] * state[3] + T.exp(state[2] - state[0]) * _load(
                            spec,
                            PAGES,
                            (IDS[PTR[SEQ[i]] + t // page_size], head // group, t % page_size),
                            1,
                            k,
                        )
                for k in T.serial(e):
                    OUT[i, head, k] = T.Cast(dtype, acc[k] / state[1])

    optional = ((6, spec.last_visible), (7, has_sinks), (8, biased))
    unused = [i for i, given in optional if not given]
    return tag(_without(func, *unused), "attention", spec)
