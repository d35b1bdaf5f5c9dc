"""Tiles of linears whose weights are in a block format: some rows by one panel of 16 columns.

`block_layout` describes the packed weights. Activations are int8 with a scale per 32 elements: max
/ 127, or a power of two where models have rounded rows themselves. For a group, with the integer
sums D = sum(q x) - zero sum(x) and X = sum(x):

    y += x_scale * scale * D + minimum * (x_scale * X)

A zero point for each block is a minimum of -zero_point * scale. The rows' x_scale * X are computed
once, so that a minimum costs one multiply-add for each 16 columns of a group.
Formats in which 16 weights share a scale have two D, one for each half of the group. Integers of a
codebook are replaced by its values, as bytes plus 128 or, where the dot product is signed, as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm.script import tirx as T

from wherry.ops.blocks import TRELLIS, BlockFormat

from . import vector as v
from .block_layout import OPERANDS, sub_bytes
from .int8_dot import Int8Dot, Words, looked_up, nibbles
from .int_layout import GROUP
from .int_tiles import Epilogue, float_scale, prefetch_weights, words_of
from .quantize_rows import Int8Rows, factor
from .tiles import PANEL


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """A packed weight: its format and its buffers."""

    format: BlockFormat
    W: Any
    S: Any
    U: Any  # None with one level of scales

    @property
    def halves(self) -> int:
        """Return how many parts of a group of 32 have a scale of their own."""
        return GROUP // min(self.format.group, GROUP)

    @property
    def corrected(self) -> bool:
        """Return whether X has a factor of its own: a minimum, or a zero point of the block."""
        return self.format.minimum or self.format.zeros

    def zero(self, dot: Int8Dot) -> int | None:
        """Return the zero point of `quantize_row`; None: rows have x_scale * X instead."""
        if self.corrected:
            return None
        return 0 if dot.centred else self.format.offset

    def pair(self, g: Any) -> tuple[Any, Any]:
        """Return the index in U of group g's bytes, and their shift."""
        if sub_bytes(self.format) == 4:
            return g, T.int32(0)
        return T.floordiv(g, 2), T.Cast("int32", T.floormod(g, 2) * 16)


def block_tile(
    x: Int8Rows,
    weights: BlockWeights,
    p: Any,
    dot: Int8Dot,
    rows: Sequence[Any],
    epilogue: Epilogue,
) -> None:
    """Emit `epilogue` with the sums of panel p for the given rows of x."""
    emit_tile(weights, p, dot, rows, epilogue, partial(_group, x, weights, dot))


def emit_tile(
    weights: BlockWeights,
    p: Any,
    dot: Int8Dot,
    rows: Sequence[Any],
    epilogue: Epilogue,
    group: Callable[[tuple[Any, Any, Any], Sequence[Any], list[Any]], None],
) -> None:
    """Emit `epilogue` with the sums of panel p, to which `group` adds each group of k.

    group: takes the indices (p, g, columns), the rows and their sums.
    """
    parts = [v.span(first, dot.lanes) for first in range(0, PANEL, dot.lanes)]
    panel = v.span(0, PANEL)
    with T.sblock("tile"):
        T.reads()
        T.writes()
        sums = [T.sblock_alloc_buffer((PANEL,), "float32") for _ in rows]
        for total in sums:
            T.buffer_store(total, v.splat(0.0, PANEL), [panel])
        # as in `int_tiles.int8_tile`
        for columns in [parts] if len(rows) == 1 else [[part] for part in parts]:
            with T.serial(int(weights.W.shape[1])) as g:
                prefetch_weights(weights.W, p, g, len(rows))
                for part in columns:
                    group((p, g, part), rows, sums)
        for i, total in enumerate(sums):
            epilogue(i, total[panel])


def _group(
    x: Int8Rows,
    weights: BlockWeights,
    dot: Int8Dot,
    at: tuple[Any, Any, Any],
    rows: Sequence[Any],
    sums: list[Any],
) -> None:
    """Emit sums += scaled sums of a group, for some columns of all rows of the tile."""
    p, g, columns = at
    lanes, halves = dot.lanes, weights.halves
    loaded = [weights.W[p, g, j, columns] for j in range(int(weights.W.shape[2]))]
    operands = operands_of(weights.format, loaded, dot)
    scales, minimums = scales_of(weights, at, dot)
    each = OPERANDS // halves
    for row, row_sums in zip(rows, sums, strict=True):
        words = words_of(x.integers, row, g, dot)
        for half, scale in enumerate(scales):
            zeros = x.zeros[row, g * halves + half]
            start = T.int32(0) if weights.corrected else zeros
            own = operands[half * each : (half + 1) * each]
            total = dot.compute(T.broadcast(start, lanes), own, _from(words, half * each))
            scaled = T.Cast(v.float_type(lanes), total)
            both = factor(scale, x.scales[row, g], dot.exact, lanes)
            added = v.fma(scaled, both, row_sums[columns], lanes, dot.fma)
            if minimums:
                x_sum = v.splat(T.reinterpret("float32", zeros), lanes)
                added = v.fma(minimums[half], x_sum, added, lanes, dot.fma)
            T.buffer_store(row_sums, added, [columns])


def _from(words: Words, first: int) -> Words:
    """Return a function that emits word `first` + j of a row's group."""
    return lambda j: words(first + j)


def operands_of(own: BlockFormat, words: list[Any], dot: Int8Dot) -> list[Any]:
    """Emit the eight operands of a group, four bytes each lane."""
    lanes = dot.lanes

    def integer(n: int) -> Any:
        return T.broadcast(T.int32(n), lanes)

    if own.low == 8:
        if not dot.centred:
            return [v.let(word) for word in words]
        # the bytes minus 128 as int8
        flipped = [T.bitwise_xor(word, integer(-0x7F7F7F80)) for word in words]
        return [v.let(T.reinterpret(f"int8x{4 * lanes}", word)) for word in flipped]
    if own.low == 2:
        integers = [v.let(_small(own, words, o, lanes)) for o in range(OPERANDS)]
        if own.codebook:
            return _values(dot, (*own.codebook, *own.codebook), own.offset, integers)
        if not own.trellis:
            return integers
        return _values(dot, TRELLIS, own.offset, _windows(own, integers, lanes))
    low = nibbles(words[: own.low])
    if own.codebook:
        return _values(dot, own.codebook, own.offset, low)
    if not own.high:
        return low
    per = 8 // own.high  # operands that an upper word has bits of
    high = [v.let(word) for word in words[own.low :]]
    return [
        v.let(T.bitwise_or(nibble, _fields(high[o // per], own.high, o % per, 4, lanes)))
        for o, nibble in enumerate(low)
    ]


def _values(dot: Int8Dot, table: Sequence[int], offset: int, indexes: list[Any]) -> list[Any]:
    """Emit operands that are values of a table; `offset` makes the values unsigned."""
    added = 0 if dot.centred else offset
    values = looked_up(dot, [value + added for value in table], indexes)
    return [T.reinterpret(f"int8x{4 * dot.lanes}", x) for x in values] if dot.centred else values


def _small(own: BlockFormat, words: list[Any], o: int, lanes: int) -> Any:
    """Emit operand o of integers with two lower bits."""
    low = _fields(words[o // 4], 2, o % 4, 0, lanes)
    return T.bitwise_or(low, _fields(words[2], 1, o, 2, lanes)) if own.high else low


def _windows(own: BlockFormat, integers: list[Any], lanes: int) -> list[Any]:
    """Emit the windows of a group's integers: see `wherry.ops.blocks`."""

    def shifted(word: Any, bits: int) -> Any:
        move = T.shift_left if bits > 0 else T.shift_right
        return move(word, T.broadcast(T.int32(abs(bits)), lanes))

    windows = []
    for o, word in enumerate(integers):
        window = word
        for before in range(1, own.memory + 1):
            bits = before * (8 + own.bits)
            window = T.bitwise_or(window, shifted(word, bits))
            if o:
                window = T.bitwise_or(window, shifted(integers[o - 1], bits - 32))
        windows.append(v.let(window))
    return windows


def _fields(word: Any, bits: int, index: int, place: int, lanes: int) -> Any:
    """Emit field `index` of `bits` bits of each byte of a word, moved to bit `place`."""
    shift = place - bits * index
    move = T.shift_left if shift > 0 else T.shift_right
    moved = move(word, T.broadcast(T.int32(abs(shift)), lanes)) if shift else word
    mask = ((2**bits - 1) << place) * 0x01010101
    return T.bitwise_and(moved, T.broadcast(T.int32(mask), lanes))


def scales_of(
    weights: BlockWeights, at: tuple[Any, Any, Any], dot: Int8Dot
) -> tuple[list[Any], list[Any]]:
    """Emit the scale of each half of a group, and the minimums that they have or need, or []."""
    (p, g, columns), own, lanes = at, weights.format, dot.lanes
    block = g // (own.block // GROUP)
    levels = [
        v.let(float_scale(weights.S[p, block, level, columns], own.floats, dot))
        for level in range(1 + weights.corrected)
    ]
    # operands of `centred` dot products are bytes minus 128
    missing = 128.0 if dot.centred else 0.0
    if own.zeros:
        return levels[:1], [v.let((v.splat(missing, lanes) - levels[1]) * levels[0])]
    if not own.two_levels:
        if not own.minimum:
            return levels[:1], []
        minimum = levels[1]
        if missing:
            minimum = v.let(minimum + levels[0] * v.splat(missing, lanes))
        return levels[:1], [minimum]
    index, shift = weights.pair(g)
    pair = v.let(T.shift_right(weights.U[p, index, columns], T.broadcast(shift, lanes)))

    def byte(place: int) -> Any:
        moved = T.shift_right(pair, T.broadcast(T.int32(8 * place), lanes)) if place else pair
        return T.bitwise_and(moved, T.broadcast(T.int32(255), lanes))

    halves, zero = weights.halves, v.splat(0.0, lanes)
    scales = [v.let(levels[0] * float_of(own, byte(half), lanes)) for half in range(halves)]
    if not own.minimum:
        return scales, []
    least = [T.Cast(v.float_type(lanes), byte(halves + half)) for half in range(halves)]
    return scales, [v.let(zero - levels[1] * own_least) for own_least in least]


def float_of(own: BlockFormat, byte: Any, lanes: int) -> Any:
    """Emit the numbers that the bytes int32 of groups are, float32; see `BlockFormat`."""

    def integer(n: int) -> Any:
        return T.int32(n) if lanes == 1 else T.broadcast(T.int32(n), lanes)

    if own.bytes is None:
        assert own.bias is not None
        return T.Cast(v.float_type(lanes), byte - integer(own.bias))
    byte = v.let(byte)
    if own.bytes == "e8m0":  # byte 0 is 2^-127, a subnormal
        bits = v.maximum(v.let(T.shift_left(byte, integer(23))), integer(0x400000))
        return T.reinterpret(v.float_type(lanes), bits)
    normal = T.reinterpret(v.float_type(lanes), T.shift_left(byte + integer(960), integer(20)))
    small = T.Cast(v.float_type(lanes), byte) * v.splat(2.0**-9, lanes)
    return T.Select(byte < integer(8), small, normal)
