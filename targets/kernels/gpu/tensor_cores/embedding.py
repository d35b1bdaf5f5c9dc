"""Looks up rows of an embedding table in the packed layout of a linear on tensor cores."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import EmbeddingSpec, LinearSpec
from wherry.ops.blocks import FORMATS

from .. import emit as e
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
    scales = packed[layout.scales_at(spec) + piece * layout.ROWS + e.div(lane, 2)]
    scale = e.let(_half(scales, T.Cast("uint32", half * 16)))
    if spec.scheme == "q8":
        at = e.let((((piece * 2 + e.div(step, 2)) * layout.LANES + lane) * 2 + e.mod(step, 2)) * 2)
        words = [_shifted(packed[at + pair], half * 8) for pair in range(2)]
        return [_number(8, words[i // 2], i % 2 * 2) * scale for i in range(4)]
    word = _shifted(packed[(piece * layout.LANES + lane) * layout.STEPS + step], half * 4)
    places = [i // 2 * 2 + i % 2 * 4 for i in range(4)]
    if spec.scheme not in layout.OFFSETS:
        return [_number(4, word, place) * scale for place in places]
    offsets = packed[layout.offsets_at(spec) + piece * layout.ROWS + e.div(lane, 2)]
    offset = e.let(_half(offsets, T.Cast("uint32", half * 16)))
    numbers = [_number(4, word, place) + T.float32(ZEROS[4]) for place in places]
    if FORMATS[spec.scheme].minimum:
        return [number * scale + offset for number in numbers]
    return [(number - (offset - T.float32(1024))) * scale for number in numbers]


def _shifted(word: Any, bits: Any) -> Any:
    """Emit the word shifted right by some bits."""
    return e.let(T.shift_right(word, T.Cast("uint32", bits)))


def _half(word: Any, shift: Any) -> Any:
    """Emit the float16 in a word from bit `shift` on, as float32."""
    shift = T.uint32(shift) if isinstance(shift, int) else shift
    bits = T.bitwise_and(T.shift_right(word, shift), T.uint32(0xFFFF))
    return T.Cast("float32", T.reinterpret("float16", T.Cast("uint16", bits)))


def _number(bits: int, word: Any, place: int) -> Any:
    value = T.bitwise_and(T.shift_right(word, T.uint32(bits * place)), T.uint32(2**bits - 1))
    return T.Cast("float32", T.Cast("int32", value) - ZEROS[bits])
