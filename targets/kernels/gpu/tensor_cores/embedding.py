"""Looks up rows of an embedding table in the packed layout of a linear on tensor cores."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import EmbeddingSpec, LinearSpec
from wherry.ops.blocks import FORMATS

from .. import emit as e
from ..block_weights import numbers_of
from ..limits import GpuLimits
from ..weights import ZEROS
from . import layout

_FOUR = 4  # neighbouring columns that one thread computes


def embedding(spec: EmbeddingSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of a lookup (tokens i32 [n], packed, y float32 [n, dim])."""
    linear = spec.as_linear()
    threads = limits.block_for(spec.dim // _FOUR)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(row: Any, thread: Any) -> None:
            token = e.let(b["tokens"][row])

            def store(place: Any) -> None:
                for i, value in enumerate(_four(linear, b["packed"], token, place)):
                    T.buffer_store(b["y"], value, [row, place * _FOUR + i])

            e.over(spec.dim // _FOUR, threads, thread, store)

        e.launch((sizes["n"],), threads, block)

    packed: e.Parameter = ("packed", (layout.size(linear),), "uint32")
    tokens: e.Parameter = ("tokens", ("n",), "int32")
    return e.prim_func([tokens, packed, ("y", ("n", spec.dim), "float32")], emit)


def _four(spec: LinearSpec, packed: Any, row: Any, place: Any) -> list[Any]:
    """Emit the loads of w[row, 4 * place : 4 * place + 4] as float32."""
    half = e.let(e.div(e.mod(row, layout.ROWS), layout.ROWS // 2))
    first_lane = e.mod(row, layout.ROWS // 2) * 4
    across, step = e.let(e.mod(e.div(place, layout.STEPS), 4)), e.mod(place, layout.STEPS)
    chunk = e.div(place, layout.CHUNK // _FOUR)
    piece = e.let(e.div(row, layout.ROWS) * layout.chunks(spec) + chunk)
    lane = e.let(first_lane + across)
    if spec.scheme == "f16":
        at = e.let(((piece * layout.STEPS + step) * layout.LANES + lane) * 4 + half)
        return [_half(packed[at + 2 * (i // 2)], i % 2 * 16) for i in range(4)]
    own = layout.STORED[spec.scheme]
    place = piece * own.scales + e.div(lane * own.scales, layout.LANES)

    def factor(first: int) -> Any:
        if own.scale_bytes == 1:
            at = e.let(T.Cast("uint32", half * 16 + e.div(across, 2) * 8))
            upper = T.shift_left(_field(8, packed[first + place], at), T.uint32(8))
            return e.let(_half(upper, 0))
        return e.let(_half(packed[first + place], T.Cast("uint32", half * 16)))

    scale = factor(layout.scales_at(spec)) if own.scales else T.float32(1)
    if own.bits == 8:
        at = e.let((((piece * 2 + e.div(step, 2)) * layout.LANES + lane) * 2 + e.mod(step, 2)) * 2)
        words = [_shifted(packed[at + pair], half * 8) for pair in range(2)]
        places = [(words[i // 2], 8 * (i % 2 * 2)) for i in range(4)]
    else:
        word = _shifted(packed[(piece * layout.LANES + lane) * layout.STEPS + step], half * 4)
        places = [(word, 4 * (i // 2 * 2 + i % 2 * 4)) for i in range(4)]
    fields = [_field(own.bits, *place) for place in places]
    if own.factors:
        numbers = numbers_of(FORMATS[spec.scheme], fields, [], None)
        of_row = T.reinterpret("float32", packed[layout.factors_at(spec) + row])
        of_row = e.let(of_row * T.float32(1 / layout.UNITS[own.bits]))
        return [number * scale * of_row for number in numbers]
    block = FORMATS.get(spec.scheme)
    if block and block.codebook:
        return [number * scale for number in numbers_of(block, fields, [], None)]
    integers = [T.Cast("float32", T.Cast("int32", field)) for field in fields]
    zero: Any = T.float32(ZEROS[own.bits])
    if block:
        zero = T.float32(block.zero)
        if block.minimum:
            offset = factor(layout.offsets_at(spec))
            return [integer * scale + offset for integer in integers]
        if own.offsets:
            zero = factor(layout.offsets_at(spec)) - T.float32(1024)
    return [(integer - zero) * scale for integer in integers]


def _shifted(word: Any, bits: Any) -> Any:
    """Emit the word shifted right by some bits."""
    return e.let(T.shift_right(word, T.Cast("uint32", bits)))


def _half(word: Any, shift: Any) -> Any:
    """Emit the float16 in a word from bit `shift` on, as float32."""
    shift = T.uint32(shift) if isinstance(shift, int) else shift
    bits = T.bitwise_and(T.shift_right(word, shift), T.uint32(0xFFFF))
    return T.Cast("float32", T.reinterpret("float16", T.Cast("uint16", bits)))


def _field(bits: int, word: Any, place: Any) -> Any:
    """Emit the bits of a word from bit `place` on, uint32."""
    place = T.uint32(place) if isinstance(place, int) else place
    return T.bitwise_and(T.shift_right(word, place), T.uint32(2**bits - 1))
