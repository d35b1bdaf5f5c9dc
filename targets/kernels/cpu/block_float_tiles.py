"""Tiles of linears with float activations whose weights are in a block format.

`block_layout` describes the packed weights. Each weight of a group becomes a float32, scale * q +
minimum, that all rows of the tile multiply; a row adds its products in ascending order of k. The
bytes of a group are unpacked as for the int8 dot product (`block_tiles`), with its table lookups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .block_layout import OPERANDS
from .block_tiles import BlockWeights, emit_tile, operands_of, scales_of
from .int8_dot import Int8Dot
from .int_layout import GROUP
from .int_tiles import Epilogue

HEIGHTS = (8, 4, 1)  # row counts of tiles, as `over_rows` takes them


def block_float_tile(
    X: Any,
    weights: BlockWeights,
    p: Any,
    dot: Int8Dot,
    rows: Sequence[Any],
    epilogue: Epilogue,
) -> None:
    """Emit `epilogue` with the sums of panel p for the given rows of X, which may be any rows."""
    emit_tile(weights, p, dot, rows, epilogue, partial(_group, X, weights, dot))


def _group(
    X: Any,
    weights: BlockWeights,
    dot: Int8Dot,
    at: tuple[Any, Any, Any],
    rows: Sequence[Any],
    sums: list[Any],
) -> None:
    """Emit sums += products of a group, for some columns of all rows of the tile."""
    p, g, columns = at
    loaded = [weights.W[p, g, j, columns] for j in range(int(weights.W.shape[2]))]
    operands = operands_of(weights.format, loaded, dot)
    scales, minimums = scales_of(weights, at, dot)
    zero = weights.zero(dot) or 0
    for o, operand in enumerate(operands):
        half = o * len(scales) // OPERANDS
        for b in range(4):
            weight = v.let(_float(_byte(operand, b, zero, dot), scales, minimums, half, dot))
            for row, row_sums in zip(rows, sums, strict=True):
                x = v.splat(X[row, g * GROUP + 4 * o + b], dot.lanes)
                added = v.fma(x, weight, row_sums[columns], dot.lanes, dot.fma)
                T.buffer_store(row_sums, added, [columns])


def _byte(operand: Any, b: int, zero: int, dot: Int8Dot) -> Any:
    """Emit byte b of an operand minus `zero`, int32."""

    def integer(n: int) -> Any:
        return T.broadcast(T.int32(n), dot.lanes)

    word = T.reinterpret(v.int_type(dot.lanes), operand)
    if dot.centred:  # bytes have a sign
        high = T.shift_left(word, integer(24 - 8 * b)) if b < 3 else word
        return T.shift_right(high, integer(24))
    low = T.shift_right(word, integer(8 * b)) if b else word
    byte = T.bitwise_and(low, integer(255))
    return byte - integer(zero) if zero else byte


def _float(byte: Any, scales: list[Any], minimums: list[Any], half: int, dot: Int8Dot) -> Any:
    value = T.Cast(v.float_type(dot.lanes), byte)
    if not minimums:
        return value * scales[half]
    return v.fma(value, scales[half], minimums[half], dot.lanes, dot.fma)
