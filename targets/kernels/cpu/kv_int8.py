"""Keys and values as int8: x = q * scale, a scale for each token, key-value head, and k or v.

A page's block of one head, k or v, is [16, e + 4] bytes: first the int8, as other caches have their
elements (keys [e, 16], values [16, e]), then the float32 scales of the 16 tokens: one vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from . import vector as v

PAGE = 16  # tokens
# What is smaller is stored as zeros: its inverse would overflow.
_SMALLEST = 1e-30


def quantize_head(
    elements: int, load: Callable[[Any, int], Any], store: Callable[[Any, int, Any], None]
) -> Any:
    """Emit the int8 of a head's `elements`, round(127 x / max|x|); returns the scale.

    `load(start, lanes)` gives float32, `store(start, lanes, value)` takes int8.
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
    inverse = v.let(T.Select(some, T.float32(127) / largest, T.float32(0)))
    with T.serial(elements // lanes) as c, T.sblock("quantize"):
        T.reads()
        T.writes()
        x = load(c * lanes, lanes) * v.splat(inverse, lanes)
        whole = v.let(T.Cast(v.int_type(lanes), v.rint(x, lanes)))
        store(c * lanes, lanes, T.Cast(f"int8x{lanes}".removesuffix("x1"), whole))
    return v.let(largest * T.float32(1 / 127))


def store_scale(Pages: Any, page: Any, which: int, head: Any, slot: Any, scale: Any) -> None:
    """Emit the store of a token's scale; Pages is int8 [P, 2, g, 16, e + 4]."""
    first = _scales(Pages) + slot * 4
    T.buffer_store(
        Pages, T.reinterpret("int8x4", scale), [page, which, head, 0, T.ramp(first, 1, 4)]
    )


def scales(Pages: Any, page: Any, which: int, head: Any) -> Any:
    """Emit the load of a page's 16 scales."""
    bytes_ = Pages[page, which, head, 0, T.ramp(_scales(Pages), 1, 4 * PAGE)]
    return v.let(T.reinterpret("float32x16", bytes_))


def _scales(Pages: Any) -> int:
    """Where a block's scales begin."""
    return (int(Pages.shape[4]) - 4) * PAGE
