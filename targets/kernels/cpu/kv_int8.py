"""Keys in 12 bits and values in 8: x = q * scale, a scale for each token, key-value head, k and v.

A page's block of one head is [16, 2.5 e + 8] bytes: the keys, transposed, as their upper eight bits
[e, 16] and lower four bits [e / 2, 16], two neighbours a byte; their float32 scales, one vector;
the values [16, e] and their scales.

Why keys have more bits: softmax multiplies the error of a score by the token's weight. With the
demo's scores 16 times as large (tests/acceptance/test_quality.py), 8 bits change a quarter of the
tokens. Finer scales do not help: scales for groups of 8 elements still change a sixth. 9 bits also
change a sixth, 10 bits a ninth, 12 bits a sixteenth, and float16 (11 bits) two or three of a
hundred. The remaining changes come from the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.script import tirx as T

from . import vector as v

PAGE = 16  # tokens of a page
KEY, VALUE = 2047, 127  # largest integers of keys and of values
# Heads with smaller elements are stored as zeros, because the inverse of their scale would
# overflow.
_SMALLEST = 1e-30
_SCALES = 4 * PAGE  # bytes of a page's scales


def is_int8(Pages: Any) -> bool:
    """Return whether a cache has the int8 layout of this file."""
    return str(Pages.dtype) == "int8"


def head_dim(Pages: Any) -> int:
    """Return the number of elements of a head, in a cache of floats or int8."""
    width = int(Pages.shape[4])
    return (width - 8) * 2 // 5 if is_int8(Pages) else width


def value_place(Pages: Any) -> tuple[int, int]:
    """Return where a head's values are: second index of pages, and offset in that block."""
    return (0, 24 * head_dim(Pages) + _SCALES) if is_int8(Pages) else (1, 0)


def quantize_head(
    elements: int,
    most: int,
    load: Callable[[Any, int], Any],
    store: Callable[[Any, int, Any], None],
) -> Any:
    """Emit round(most * x / max|x|) for the elements of a head; return the scale.

    `load(start, lanes)` gives float32, `store(start, lanes, value)` takes int32.
    """
    lanes = v.widest(elements)
    span = v.span(0, lanes)
    top = T.sblock_alloc_buffer((lanes,), "float32")
    T.buffer_store(top, v.splat(0.0, lanes), [span])
    with T.serial(elements // lanes) as c, T.sblock("largest"):
        T.reads()
        T.writes()
        x = v.let(v.absolute(load(c * lanes, lanes), lanes))
        T.buffer_store(top, v.maximum(x, top[span]), [span])
    largest = v.max_lanes(top[span], lanes)
    some = largest > T.float32(_SMALLEST)
    inverse = v.let(T.Select(some, T.float32(most) / largest, T.float32(0)))
    with T.serial(elements // lanes) as c, T.sblock("quantize"):
        T.reads()
        T.writes()
        x = load(c * lanes, lanes) * v.splat(inverse, lanes)
        store(c * lanes, lanes, v.let(T.Cast(v.int_type(lanes), v.rint(x, lanes))))
    return v.let(largest * T.float32(1 / most))


def store_keys(
    Pages: Any, page: Any, head: Any, pair: Any, slot: Any, keys: Sequence[Any], lanes: int
) -> None:
    """Emit the store of elements 2 * pair and 2 * pair + 1 of `lanes` int16 keys.

    The first key is of the token `slot` of the page.
    """
    four, low = (T.broadcast(T.int16(n), lanes) if lanes > 1 else T.int16(n) for n in (4, 15))
    nibbles = [T.bitwise_and(key, low) for key in keys]
    parts = [T.shift_right(key, four) for key in keys]
    parts.append(T.bitwise_or(nibbles[0], T.shift_left(nibbles[1], four)))
    rows = (2 * pair, 2 * pair + 1, head_dim(Pages) + pair)
    for row, part in zip(rows, parts, strict=True):
        byte = T.Cast(f"int8x{lanes}".removesuffix("x1"), part)
        T.buffer_store(Pages, byte, [page, 0, head, 0, v.span(row * PAGE + slot, lanes)])


def load_keys(Pages: Any, page: Any, head: Any, pair: Any) -> list[Any]:
    """Emit the loads of elements 2 * pair and 2 * pair + 1 of a page's keys, as float32."""

    def row(number: Any) -> Any:
        return Pages[page, 0, head, 0, v.span(number * PAGE, PAGE)]

    def all_lanes(n: int) -> Any:
        return T.broadcast(T.int32(n), PAGE)

    bytes_ = T.reinterpret("uint8x16", row(head_dim(Pages) + pair))
    both = v.let(T.Cast("int32x16", bytes_))
    lower = (T.bitwise_and(both, all_lanes(15)), T.shift_right(both, all_lanes(4)))
    keys = []
    for i, low in enumerate(lower):
        upper = T.shift_left(T.Cast("int32x16", row(2 * pair + i)), all_lanes(4))
        keys.append(v.let(T.Cast("float32x16", T.bitwise_or(upper, low))))
    return keys


def store_scale(Pages: Any, page: Any, which: int, head: Any, slot: Any, scale: Any) -> None:
    """Emit the store of the scale of a token's key (which = 0) or value (1)."""
    first = _first_scale(Pages, which) + slot * 4
    T.buffer_store(Pages, T.reinterpret("int8x4", scale), [page, 0, head, 0, T.ramp(first, 1, 4)])


def scales(Pages: Any, page: Any, which: int, head: Any) -> Any:
    """Emit the load of a page's 16 scales, of its keys (which = 0) or values (1)."""
    bytes_ = Pages[page, 0, head, 0, T.ramp(_first_scale(Pages, which), 1, _SCALES)]
    return v.let(T.reinterpret("float32x16", bytes_))


def _first_scale(Pages: Any, which: int) -> int:
    """Return the byte offset of the scales in a head's block of a page."""
    e = head_dim(Pages)
    return 40 * e + _SCALES if which else 24 * e
