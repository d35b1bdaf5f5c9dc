"""Quantized activation rows in pairs, as Arm's matrix instructions (i8mm) read them.

An int32 sum becomes a float without a conversion, which has half the throughput of an addition or
less: sums start at the bits of `BIAS` = 1.5 * 2^23, whose last bit is worth 1. As a float, the
result is BIAS + sum, exactly, because every |sum| is below 2^22. With scales that are powers of
two, the start is BIAS * scale, whose last bit is worth the scale: the result is (BIAS + sum) *
scale, and a subtraction leaves sum * scale, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm.script import tirx as T

from .int_layout import GROUP, groups

OCTETS = GROUP // 8  # vectors of a pair and group: eight int8 of the even row, eight of the odd
BIAS = 1.5 * 2.0**23
BIAS_BITS = int(np.float32(BIAS).view("int32"))
_VECTOR = 4  # words of a vector
_COPIES = 2  # of a start: one for each accumulator, which a load is cheaper for than a copy


@dataclass(frozen=True, slots=True)
class PairRows:
    """Buffers of activation rows 2i and 2i + 1; of an odd number, the last has no pair.

    In vectors of four words, those of sums and scales are for the rows (2i, 2i + 1, 2i, 2i + 1).
    """

    integers: Any  # int32 [ceil(m / 2), 16 G]: OCTETS vectors of a group
    starts: Any  # int32 [ceil(m / 2), 8 G]: bits that a group's sums start at, twice
    scales: Any  # int32 [ceil(m / 2), 4 G]: bits of the float32 BIAS * scale, or with `exact` scale
    zero: int  # zero point of the unsigned weights
    exact: bool  # whether scales are not powers of two

    @classmethod
    def of(cls, m: Any, columns: int, zero: int, exact: bool) -> PairRows:
        """Allocate the buffers for `m` rows of `columns` elements."""
        widths = (OCTETS * _VECTOR, _COPIES * _VECTOR, _VECTOR)
        pairs, g = T.floordiv(m + 1, 2), groups(columns)
        integers, starts, scales = (
            T.sblock_alloc_buffer((pairs, width * g), "int32") for width in widths
        )
        return cls(integers, starts, scales, zero, exact)

    def octet(self, pair: Any, g: Any, o: int) -> Any:
        """Return vector `o` of a pair's group, int8x16."""
        at = T.ramp((g * OCTETS + o) * _VECTOR, 1, _VECTOR)
        return T.reinterpret("int8x16", self.integers[pair, at])

    def start(self, pair: Any, g: Any, copy: int) -> Any:
        """Return what the sums of a pair's group start at, int32x4."""
        return self.starts[pair, T.ramp((g * _COPIES + copy) * _VECTOR, 1, _VECTOR)]

    def scale(self, pair: Any, g: Any) -> Any:
        """Return the scales of a pair's group, float32x4; see `scales`."""
        return T.reinterpret("float32x4", self.scales[pair, T.ramp(g * _VECTOR, 1, _VECTOR)])

    def store_integers(self, row: Any, g: Any, half: int, words: Any) -> None:
        """Emit the store of half a group of a row; words: int32x4."""
        pair, odd = T.floordiv(row, 2), T.floormod(row, 2)
        for i in (0, 1):
            octet = T.Shuffle([words], [2 * i, 2 * i + 1])
            first = (g * OCTETS + 2 * half + i) * _VECTOR + 2 * odd
            T.buffer_store(self.integers, octet, [pair, T.ramp(first, 1, 2)])

    def store_scale(self, row: Any, g: Any, stored: Any, total: Any) -> None:
        """Emit the store of a group's scale, as `Int8Rows` stores it, and of its start.

        `total` is the sum of the group's int8.
        """
        pair, odd = T.floordiv(row, 2), T.floormod(row, 2)
        start = T.int32(BIAS_BITS) - total * T.int32(self.zero)
        if not self.exact:
            stored = T.int32(BIAS_BITS) + stored
            start = stored - total * T.int32(self.zero)
        for i in range(2):
            T.buffer_store(self.scales, stored, [pair, g * _VECTOR + 2 * i + odd])
        for i in range(2 * _COPIES):
            T.buffer_store(self.starts, start, [pair, g * _COPIES * _VECTOR + 2 * i + odd])
