"""Quantizes the activations of an integer linear to int8: x = q * scale, a scale per 32 elements.

There are two kinds of scales. With 4-bit weights they are powers of two, so that the product with a
weight's scale is an integer addition to its exponent. On a Zen 4 the units that multiply floats
also compute the dot products, and other units add integers: this saves one of ten instructions of a
group there. The weights' rounding error hides that of the activations. With 8-bit weights scales
are max / 127, which halves the mean square error, because there the activations' error is the
larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .int_layout import GROUP, groups
from .pair_rows import PairRows

WORDS = GROUP // 4  # int32 words that hold the int8 of a group
BIAS = 127  # exponent bias of float32
# limit of a scale's base-2 logarithm: its product with any weight's scale is a normal float
MOST = 60
# Bytes whose multiples have the same place in L1. Rows at such a distance would evict each other
# while a tile of 16 reads them, so each begins a cache line later: 1.75 times the speed of a GEMM.
_ALIAS, _LINE_WORDS = 4096, 16


@dataclass(frozen=True, slots=True)
class Int8Rows:
    """Buffers of quantized activation rows."""

    integers: Any  # int32 [m, 8 G, or a cache line more], four int8 in each word
    scales: Any  # int32 [m, G], scales in the form that `factor` reads
    # int32 [m, parts * G]: -zero point * sum of the int8 of each part of a group; without a zero
    # point the bits of a float32, scale * sum
    zeros: Any
    pairs: PairRows | None = None  # the same rows, for matrix instructions

    @classmethod
    def of(cls, m: Any, columns: int, parts: int = 1, pairs: PairRows | None = None) -> Int8Rows:
        """Allocate the buffers for `m` rows of `columns` elements; a group has 1 or 2 `parts`."""
        g = groups(columns)
        padding = _LINE_WORDS if g * GROUP % _ALIAS == 0 else 0
        widths = (g * WORDS + padding, g, parts * g)
        integers, scales, zeros = (T.sblock_alloc_buffer((m, width), "int32") for width in widths)
        return cls(integers, scales, zeros, pairs)

    @property
    def parts(self) -> int:
        """Return the number of parts of a group."""
        return int(self.zeros.shape[1]) // int(self.scales.shape[1])


def factor(weight_scale: Any, stored: Any, exact: bool, lanes: int) -> Any:
    """Emit the product of weight scales and a group's `stored` activation scale, float32."""
    if exact:
        return weight_scale * v.splat(T.reinterpret("float32", stored), lanes)
    bits = T.reinterpret(v.int_type(lanes), weight_scale)
    return T.reinterpret(v.float_type(lanes), bits + T.broadcast(stored, lanes))


def quantize_row(X: Any, out: Int8Rows, zero: int | None, exact: bool, row: Any) -> None:
    """Emit the quantization of row `row` of X [., K].

    `zero` is the zero point of the weights; None, with `exact` alone: they have minimums instead.

    A stored scale is the scale's logarithm in the exponent bits of a float, or with `exact` the
    bits of the float itself. If K does not fill the last group, it is padded with zeros.
    """
    k = int(X.shape[1])
    if k >= GROUP:
        with T.serial(k // GROUP) as g, T.sblock("quantize"):
            T.reads()
            T.writes()
            halves = [X[row, T.ramp(g * GROUP + h * 16, 1, 16)] for h in (0, 1)]
            _quantize(halves, out, zero, exact, row, g)
    if k % GROUP:
        g = k // GROUP
        rest = T.sblock_alloc_buffer((GROUP,), "float32")
        T.buffer_store(rest, v.splat(0.0, GROUP), [T.ramp(0, 1, GROUP)])
        with T.serial(k % GROUP) as i:
            T.buffer_store(rest, X[row, g * GROUP + i], [i])
        _quantize([rest[T.ramp(h * 16, 1, 16)] for h in (0, 1)], out, zero, exact, row, g)


def _quantize(
    halves: list[Any], out: Int8Rows, zero: int | None, exact: bool, row: Any, g: Any
) -> None:
    low, high = (v.let(x) for x in halves)
    largest = v.max_lanes(v.maximum(v.let(v.absolute(low, 16)), v.let(v.absolute(high, 16))), 16)
    scale, inverse = (_exact if exact else _power_of_two)(largest)
    rounded = []
    for h, x in enumerate((low, high)):
        q = v.let(T.Cast("int32x16", v.rint(x * v.splat(inverse, 16), 16)))
        bytes_ = T.reinterpret("int32x4", T.Cast("int8x16", q))
        T.buffer_store(out.integers, bytes_, [row, T.ramp(g * WORDS + 4 * h, 1, 4)])
        if out.pairs:
            out.pairs.store_integers(row, g, h, bytes_)
        rounded.append(q)
    T.buffer_store(out.scales, scale, [row, g])
    parts = [rounded[0] + rounded[1]] if out.parts == 1 else rounded
    for i, part in enumerate(parts):
        total = v.sum_lanes(part, 16)
        if zero is None:
            x_sum = T.Cast("float32", total) * T.reinterpret("float32", scale)
            stored = T.reinterpret("int32", x_sum)
        else:
            stored = total * T.int32(-zero)
        T.buffer_store(out.zeros, stored, [row, g * len(parts) + i])
        if out.pairs:
            out.pairs.store_scale(row, g, scale, total)


def _power_of_two(largest: Any) -> tuple[Any, Any]:
    """Emit the stored scale, the least power of two >= largest / 127, and the scale's inverse."""
    bits = T.reinterpret("int32", largest * T.float32(1 / 127))
    exponent = v.let(T.shift_right(bits + T.int32(2**23 - 1), T.int32(23)))
    exponent = v.let(T.max(T.min(exponent, T.int32(BIAS + MOST)), T.int32(BIAS - MOST)))
    inverse = v.let(T.reinterpret("float32", (2 * BIAS - exponent) * 2**23))
    return (exponent - BIAS) * 2**23, inverse


def _exact(largest: Any) -> tuple[Any, Any]:
    """Emit the stored scale, largest / 127, and its inverse."""
    scale = v.let(largest * T.float32(1 / 127))
    scale = v.let(T.max(T.min(scale, T.float32(2.0**MOST)), T.float32(2.0**-MOST)))
    return T.reinterpret("int32", scale), v.let(T.float32(1) / scale)
