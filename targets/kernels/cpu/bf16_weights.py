"""Dequantizes packed weights in pairs along K, as `bf16_tiles` multiplies them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .bf16_tiles import CHUNK, Unpack, rounded
from .int_layout import GROUP, IntLayout
from .tiles import PANEL

_CUT = 1 + 0.643 * 2.0**-8  # for U(1, 2): the mean of m over that of m^2 is 0.643
_MANTISSA = 23  # mantissa bits of float32


def integers(W: Any, S: Any, layout: IntLayout) -> Unpack:
    """Return how groups of the layout `int_layout` are dequantized, in 7 instructions a pair.

    An integer n is shifted to a place of a float32's mantissa where it is 2^e + n for a small e;
    one multiply-add scales it and subtracts 2^e + zero. That difference is within 2^-13 of a scale
    (2^-9 in 8 bits), far below a bfloat16's last bit. Its lower half is cut off, which on average
    takes 0.643 of 2^-8 from a number: the scale has that added.
    """
    places = {4: (12, 16), 8: (8,)}[layout.bits]

    def unpack(p: Any, g: Any, store: Callable[[int, Any, Any], None]) -> None:
        columns = v.span(0, PANEL)
        prefetch_chunk(W, p, g)
        scale = v.let(T.Cast("float32x16", S[p, g, columns]) * v.splat(_CUT, PANEL))
        exponents = {place: _MANTISSA - place for place in places}
        zeros = {
            place: v.let(v.splat(-(2.0**e + layout.zero), PANEL) * scale)
            for place, e in exponents.items()
        }
        for j in range(layout.words):
            word = v.let(W[p, g, j, columns])
            moved: dict[int, Any] = {}  # by the shift to the left

            def weight(shift: int, word: Any = word, moved: dict[int, Any] = moved) -> Any:
                place = places[shift // layout.bits % len(places)]
                if place - shift not in moved:
                    moved[place - shift] = v.let(_shifted(word, place - shift))
                constants = (layout.mask << place, (127 + exponents[place]) << _MANTISSA)
                mask, bits = (T.broadcast(T.int32(n), PANEL) for n in constants)
                number = T.bitwise_or(T.bitwise_and(moved[place - shift], mask), bits)
                number = T.reinterpret("float32x16", number)
                return T.reinterpret("int32x16", v.fma(number, scale, zeros[place], PANEL, True))

            shifts = {element: shift for shift, element in layout.places(j)}
            for first in sorted(shifts)[::2]:
                store(first // 2, *(weight(shifts[first + i]) for i in (0, 1)))

    return unpack


def _shifted(word: Any, left: int) -> Any:
    if left == 0:
        return word
    shift = T.shift_left if left > 0 else T.shift_right
    return shift(word, T.broadcast(T.int32(abs(left)), PANEL))


def prefetch_chunk(W: Any, p: Any, g: Any) -> None:
    """Emit the prefetch of this group of the next chunk into L2."""
    for j in range(int(W.shape[2])):
        v.prefetch(T.address_of(W[p, g + CHUNK, j, 0]), v.L2)


def floats(W: Any) -> Unpack:
    """Return how groups of the layout of `linear` become float32, with zeros beyond K."""
    k, width = int(W.shape[1]), int(W.shape[2]) // PANEL

    def unpack(p: Any, g: Any, store: Callable[[int, Any, Any], None]) -> None:
        strip, column = T.floordiv(p, width), T.floormod(p, width) * PANEL

        def element(i: int) -> Any:
            at = g * GROUP + i
            w = T.Cast("float32x16", W[strip, T.min(at, k - 1), v.span(column, PANEL)])
            if k % GROUP <= i and k % GROUP:
                w = T.Select(T.broadcast(at < k, PANEL), w, v.splat(0.0, PANEL))
            return w

        for i in range(GROUP // 2):
            store(i, rounded(element(2 * i)), rounded(element(2 * i + 1)))

    return unpack
