"""Dequantizes packed weights in pairs along K, as `bf16_tiles` multiplies them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .bf16_tiles import Unpack
from .int_layout import GROUP, IntLayout
from .int_tiles import in_place, prefetch_weights
from .tiles import PANEL

_HEIGHT = 32  # rows that share a weight at least, for the prefetch


def integers(W: Any, S: Any, layout: IntLayout) -> Unpack:
    """Return how groups of the layout `int_layout` are dequantized."""

    def unpack(p: Any, g: Any, store: Callable[[int, Any, Any], None]) -> None:
        columns = v.span(0, PANEL)
        prefetch_weights(W, p, g, _HEIGHT)
        scale = v.let(T.Cast("float32x16", S[p, g, columns]))
        for j in range(layout.words):
            weight = in_place(v.let(W[p, g, j, columns]), layout)
            shifts = {element: shift for shift, element in layout.places(j)}
            for first in sorted(shifts)[::2]:
                even, odd = (weight(shifts[first + i]) * scale for i in (0, 1))
                store(first // 2, even, odd)

    return unpack


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
            store(i, element(2 * i), element(2 * i + 1))

    return unpack
