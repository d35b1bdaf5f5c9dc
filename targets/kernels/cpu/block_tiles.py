"""Tiles of linears whose weights are in a block format: some rows by one panel of 16 columns.

`block_layout` describes the packed weights. Activations are int8 with a scale per 32 elements, max
/ 127. For a group, with the integer sums D = sum(q x) - zero sum(x) and X = sum(x):

    y += x_scale * scale * D + minimum * (x_scale * X)

A zero point for each block is a minimum of -zero_point * scale. The rows' x_scale * X are computed
once, so that a minimum costs one multiply-add for each 16 columns of a group.
Formats in which 16 weights share a scale have two D, one for each half of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops.blocks import BlockFormat

from . import vector as v
from .block_layout import OPERANDS
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


def block_tile(
    x: Int8Rows,
    weights: BlockWeights,
    p: Any,
    dot: Int8Dot,
    rows: Sequence[Any],
    epilogue: Epilogue,
) -> None:
    """Emit `epilogue` with the sums of panel p for the given rows of x."""
    parts = [v.span(first, dot.lanes) for first in range(0, PANEL, dot.lanes)]
    whole = v.span(0, PANEL)
    with T.sblock("tile"):
        T.reads()
        T.writes()
        sums = [T.sblock_alloc_buffer((PANEL,), "float32") for _ in rows]
        for total in sums:
            T.buffer_store(total, v.splat(0.0, PANEL), [whole])
        # as in `int_tiles.int8_tile`
        for columns in [parts] if len(rows) == 1 else [[part] for part in parts]:
            with T.serial(int(weights.W.shape[1])) as g:
                prefetch_weights(weights.W, p, g, len(rows))
                for part in columns:
                    _group(x, weights, (p, g, part), dot, rows, sums)
        for i, total in enumerate(sums):
            epilogue(i, total[whole])


def _group(
    x: Int8Rows,
    weights: BlockWeights,
    at: tuple[Any, Any, Any],
    dot: Int8Dot,
    rows: Sequence[Any],
    sums: list[Any],
) -> None:
    """Emit sums += scaled sums of a group, for some columns of all rows of the tile."""
    p, g, columns = at
    lanes, halves = dot.lanes, weights.halves
    loaded = [weights.W[p, g, j, columns] for j in range(int(weights.W.shape[2]))]
    operands = _operands(weights.format, loaded, dot)
    scales, minimum = _scales(weights, at, dot)
    each = OPERANDS // halves
    for row, row_sums in zip(rows, sums, strict=True):
        words = words_of(x.integers, row, g, dot)
        for half, scale in enumerate(scales):
            zeros = x.zeros[row, g * halves + half]
            start = T.int32(0) if weights.corrected else zeros
            own = operands[half * each : (half + 1) * each]
            total = dot.compute(T.broadcast(start, lanes), own, _from(words, half * each))
            scaled = T.Cast(v.float_type(lanes), total)
            both = factor(scale, x.scales[row, g], True, lanes)
            added = v.fma(scaled, both, row_sums[columns], lanes, dot.fma)
            if minimum is not None:
                x_sum = v.splat(T.reinterpret("float32", zeros), lanes)
                added = v.fma(minimum, x_sum, added, lanes, dot.fma)
            T.buffer_store(row_sums, added, [columns])


def _from(words: Words, first: int) -> Words:
    """Return a function that emits word `first` + j of a row's group."""
    return lambda j: words(first + j)


def _operands(own: BlockFormat, words: list[Any], dot: Int8Dot) -> list[Any]:
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
    low = nibbles(words[: own.low])
    if own.codebook:
        added = 0 if dot.centred else own.offset
        values = looked_up(dot, [value + added for value in own.codebook], low)
        return [T.reinterpret(f"int8x{4 * lanes}", x) for x in values] if dot.centred else values
    if not own.high:
        return low
    high = [v.let(word) for word in words[own.low :]]
    mask = {1: 0x10101010, 2: 0x30303030}[own.high]
    made = []
    for o, nibble in enumerate(low):
        place = o % (8 // own.high) * own.high  # of the operand's bits in a byte
        word = high[o * own.high // 8]
        moved = word
        if place < 4:
            moved = T.shift_left(word, integer(4 - place))
        elif place > 4:
            moved = T.shift_right(word, integer(place - 4))
        made.append(v.let(T.bitwise_or(nibble, T.bitwise_and(moved, integer(mask)))))
    return made


def _scales(
    weights: BlockWeights, at: tuple[Any, Any, Any], dot: Int8Dot
) -> tuple[list[Any], Any | None]:
    """Emit the scale of each half of a group, and the minimum that it has or needs."""
    (p, g, columns), own, lanes = at, weights.format, dot.lanes
    block = g // (own.block // GROUP)
    levels = [
        v.let(float_scale(weights.S[p, block, level, columns], own.floats, dot))
        for level in range(1 + weights.corrected)
    ]
    # operands of `centred` dot products are bytes minus 128
    missing = 128.0 if dot.centred else 0.0
    if own.zeros:
        return levels[:1], v.let((v.splat(missing, lanes) - levels[1]) * levels[0])
    if not own.two_levels:
        minimum = levels[1] if own.minimum else None
        if minimum is not None and missing:
            minimum = v.let(minimum + levels[0] * v.splat(missing, lanes))
        return levels[:1], minimum
    shift = T.broadcast(T.Cast("int32", g % 2 * 16), lanes)
    pair = v.let(T.shift_right(weights.U[p, g // 2, columns], shift))

    def byte(place: int) -> Any:
        moved = T.shift_right(pair, T.broadcast(T.int32(8 * place), lanes)) if place else pair
        return T.bitwise_and(moved, T.broadcast(T.int32(255), lanes))

    scales = [v.let(levels[0] * float_of(own, byte(half), lanes)) for half in range(weights.halves)]
    if not own.minimum:
        return scales, None
    return scales, v.let(v.splat(0.0, lanes) - levels[1] * T.Cast(v.float_type(lanes), byte(1)))


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
