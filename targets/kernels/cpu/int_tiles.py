"""Tiles of linears with integer weights: some rows by one panel of 16 columns.

`int_layout` describes the packed weights. With an int8 dot product, activations are int8 with a
scale per 32 elements of a row; otherwise the integers are converted to floats. Both add the groups
in ascending order into one accumulator per row and panel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tvm.script import tirx as T

from . import vector as v
from .int8_dot import Int8Dot
from .int_layout import GROUP, IntLayout
from .isa import Isa
from .quantize_rows import WORDS, Int8Rows, factor
from .tiles import PANEL

_RAMP = (0, 1, PANEL)
Epilogue = Callable[[int, Any], None]  # arguments: row of the tile, the panel's sums (float32x16)


class _Panel(NamedTuple):
    """A panel: 16 columns of a packed weight."""

    W: Any
    S: Any  # buffer with the scales of weights
    p: Any  # index of the panel


def int8_tile(
    x: Int8Rows, W: Any, S: Any, p: Any, dot: Int8Dot, rows: Sequence[Any], epilogue: Epilogue
) -> None:
    """Emit `epilogue` with the sums of panel p for the given rows of x, which may be any rows."""
    parts = [v.span(first, dot.lanes) for first in range(0, PANEL, dot.lanes)]
    height = len(rows)
    with T.sblock("tile"):
        T.reads()
        T.writes()
        # One buffer per row: TVM keeps only buffers below 1 KiB on the stack, where LLVM turns them
        # into registers.
        sums = [T.sblock_alloc_buffer((PANEL,), "float32") for _ in range(height)]
        for total in sums:
            T.buffer_store(total, v.splat(0.0, PANEL), [T.ramp(*_RAMP)])
        # A single row reads the weights in memory order. More rows process the columns of one
        # vector at a time, because registers cannot hold the operands of several.
        for columns in [parts] if height == 1 else [[part] for part in parts]:
            with T.serial(int(S.shape[1])) as g:
                prefetch_weights(W, p, g, height)
                for part in columns:
                    _int8_group(x, _Panel(W, S, p), sums, g, part, dot, rows)
        for i, total in enumerate(sums):
            epilogue(i, total[T.ramp(*_RAMP)])


def _int8_group(
    x: Int8Rows,
    panel: _Panel,
    sums: list[Any],
    g: Any,
    columns: Any,
    dot: Int8Dot,
    rows: Sequence[Any],
) -> None:
    """Emit sums += scaled sums of group g, for `columns` of all rows of the tile."""
    lanes, (W, S, p) = dot.lanes, panel
    operands = dot.operands([W[p, g, j, columns] for j in range(int(W.shape[2]))])
    scale = v.let(float_scale(S[p, g, columns], S.dtype, dot))
    for row, row_sums in zip(rows, sums, strict=True):
        start = T.broadcast(x.zeros[row, g], lanes)
        total = dot.compute(start, operands, words_of(x.integers, row, g, dot))
        both = factor(scale, x.scales[row, g], dot.exact, lanes)
        product = T.Cast(v.float_type(lanes), total)
        added = v.fma(product, both, row_sums[columns], lanes, dot.fma)
        T.buffer_store(row_sums, added, [columns])


def float_scale(stored: Any, dtype: str, dot: Int8Dot) -> Any:
    """Emit weight scales as float32, which are normal numbers: `factor` adds to exponents."""
    if dtype == "float16" and not dot.half:
        return v.half_to_float(stored, dot.lanes)
    return T.Cast(v.float_type(dot.lanes), stored)


def words_of(XQ: Any, row: Any, g: Any, dot: Int8Dot) -> Callable[[int], Any]:
    """Return a function that emits word j of a row's group, in all lanes."""
    if not dot.by_element:
        return lambda j: T.broadcast(XQ[row, g * WORDS + j], dot.lanes)
    halves = [v.let(XQ[row, T.ramp(g * WORDS + h, 1, 4)]) for h in (0, 4)]
    return lambda j: v.shuffle([halves[j // 4]], [j % 4] * dot.lanes)


def prefetch_weights(W: Any, p: Any, g: Any, height: int) -> None:
    """Emit prefetches of later weights: the hardware prefetcher stops at the end of a 4 KiB page.

    They may run past the last weight, because a prefetch never faults. Distance and cache level
    were measured on a Zen 4: the distance is longer than one thread needs, because with two threads
    loads take longer. 8-bit weights have twice the bytes for the same work, so with several rows L1
    would evict them before their use.
    """
    words = int(W.shape[2])
    ahead, cache = (16384, v.L2) if words == 8 and height > 1 else (12288, v.L1)
    later = g + ahead // (4 * PANEL * words)
    for j in range(words):
        v.prefetch(T.address_of(W[p, later, j, 0]), cache)


def float_tile(
    X: Any,
    W: Any,
    S: Any,
    p: Any,
    layout: IntLayout,
    isa: Isa,
    rows: Sequence[Any],
    epilogue: Epilogue,
) -> None:
    """Emit `epilogue` with the sums of panel p for the given rows of X, which may be any rows."""
    k, ramp, height = int(X.shape[1]), T.ramp(*_RAMP), len(rows)
    panel = _Panel(W, S, p)
    with T.sblock("tile"):
        T.reads()
        T.writes()
        sums = T.sblock_alloc_buffer((height, PANEL), "float32")
        for i in range(height):
            T.buffer_store(sums, v.splat(0.0, PANEL), [i, ramp])
        if k >= GROUP:
            with T.serial(k // GROUP) as g:
                _float_group(X, panel, sums, rows, g, GROUP, layout, isa)
        if k % GROUP:
            _float_group(X, panel, sums, rows, k // GROUP, k % GROUP, layout, isa)
        for i in range(height):
            epilogue(i, sums[i, ramp])


def _float_group(
    X: Any,
    panel: _Panel,
    sums: Any,
    rows: Sequence[Any],
    g: Any,
    used: int,
    layout: IntLayout,
    isa: Isa,
) -> None:
    """Emit sums += the first `used` weights of group g times x, scaled."""
    (W, S, p), ramp, height = panel, T.ramp(*_RAMP), int(sums.shape[0])
    with T.sblock("group"):
        T.reads()
        T.writes()
        parts = T.sblock_alloc_buffer((height, PANEL), "float32")
        for i in range(height):
            T.buffer_store(parts, v.splat(0.0, PANEL), [i, ramp])
        for j in range(layout.words):
            word = v.let(W[p, g, j, T.ramp(*_RAMP)])
            weights = in_place(word, layout) if isa.lanes == PANEL else _converted(word, layout)
            for shift, element in layout.places(j):
                if element >= used:
                    continue
                weight = v.let(weights(shift))
                for i, row in enumerate(rows):
                    x = v.splat(X[row, g * GROUP + element], PANEL)
                    added = v.fma(x, weight, parts[i, ramp], PANEL, isa.fma)
                    T.buffer_store(parts, added, [i, ramp])
        scale = v.let(T.Cast("float32x16", S[p, g, T.ramp(*_RAMP)]))
        for i in range(height):
            added = v.fma(parts[i, ramp], scale, sums[i, ramp], PANEL, isa.fma)
            T.buffer_store(sums, added, [i, ramp])


def _converted(word: Any, layout: IntLayout) -> Callable[[int], Any]:
    """Return a function that emits an integer of `word` minus its zero point, as float32.

    It takes the integer's shift in the word; the conversion is exact.
    """

    def weight(shift: int) -> Any:
        shifts, mask, zero = (
            T.broadcast(T.int32(n), PANEL) for n in (shift, layout.mask, layout.zero)
        )
        integer = T.bitwise_and(T.shift_right(word, shifts), mask)
        return T.Cast("float32x16", integer - zero)

    return weight


_MANTISSA = 23  # mantissa bits of float32


def in_place(word: Any, layout: IntLayout) -> Callable[[int], Any]:
    """Return what `_converted` returns, in two AVX512 instructions instead of four.

    It saves a quarter of a row's time. An integer n stays where it is, as a part of the mantissa of
    2^e + n, for the e that makes its lowest bit 1; one instruction masks it and adds the exponent,
    one subtracts 2^e + zero. The upper integers of a word are shifted to places of lower ones
    first.
    """
    down = {4: 12, 8: 16}[layout.bits]
    upper = v.let(T.shift_right(word, T.broadcast(T.int32(down), PANEL)))

    def weight(shift: int) -> Any:
        low = shift + layout.bits <= _MANTISSA
        source, place = (word, shift) if low else (upper, shift - down)
        exponent = _MANTISSA - place
        constants = (layout.mask << place, (127 + exponent) << _MANTISSA)
        mask, bits = (T.broadcast(T.int32(n), PANEL) for n in constants)
        number = T.reinterpret("float32x16", T.bitwise_or(T.bitwise_and(source, mask), bits))
        return number - v.splat(2.0**exponent + layout.zero, PANEL)

    return weight
