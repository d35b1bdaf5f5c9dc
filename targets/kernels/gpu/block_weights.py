"""Loads of weights in the block formats of `wherry.ops.blocks`, eight weights at a time.

Integers are dequantized in registers. Where 32 weights share a scale and have no minimum, a lane
sums (q - zero) * x, and multiplies the sum by the scale, as with the schemes of our own; otherwise
each weight is multiplied by its scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import LinearSpec
from wherry.ops.blocks import FORMATS, TRELLIS_FACTORS, TRELLIS_STEPS, BlockFormat

from . import emit as e
from .weights import GROUP, MAGIC, WORD, Weights


def matrix(spec: LinearSpec, tensors: tuple[Any, ...]) -> Weights:
    """Return the loads of a matrix in any scheme."""
    return (BlockWeights if spec.scheme in FORMATS else Weights)(spec, tensors)


@dataclass(frozen=True, slots=True)
class BlockWeights(Weights):
    """The stored tensors of one matrix in a block format, and loads of its elements.

    K is a multiple of 32.
    """

    @property
    def format(self) -> BlockFormat:
        """Return the structure of the format."""
        return FORMATS[self.spec.scheme]

    @property
    def has_scales(self) -> bool:
        """Return whether the eight numbers of a word must be multiplied by `scale`."""
        return self.format.group % GROUP == 0 and not self.format.minimum

    def scale(self, row: Any, group: Any) -> Any:
        """Emit the load of the scale of a row's group of 32, as float32."""
        return self.scale_of(row, group * GROUP)

    def group(self, row: Any, group: Any) -> Callable[[int], list[Any]]:
        """Emit the load of a row's group of 32; see `Weights.group`."""
        own, first = self.format, group * GROUP
        count = GROUP * own.low // 32  # number of uint32 in a group
        words = self._adjacent("q_weight", row, group * count, count)
        high = self._adjacent("q_high", row, group * own.high, own.high)
        zero = self._zero(row, first)
        each = min(own.group, GROUP)
        factors = [self._factors(row, first + k) for k in range(0, GROUP, each)]

        def word(index: int) -> list[Any]:
            first = index * WORD
            before = [
                _integer(own, words, high, first - i) for i in range(1, min(first, own.memory) + 1)
            ]
            integers = [_integer(own, words, high, first + i) for i in range(WORD)]
            return _dequantized(numbers_of(own, integers, before, zero), *factors[first // each])

        return word

    def word(self, row: Any, index: Any) -> list[Any]:
        """Emit the load of eight weights of a row; see `Weights.word`."""
        own, k = self.format, index * WORD
        count = max(1, WORD * own.low // 32)
        lows = [self._field("q_weight", row, k, own.low)]
        if count > 1:
            lows = [e.let(self._tensor("q_weight")[row, index * count + i]) for i in range(count)]
        high = [self._field("q_high", row, k, own.high)] if own.high else []
        integers = [_integer(own, lows, high, i) for i in range(WORD)]
        before = [self._before(row, k, i + 1) for i in range(own.memory)]
        numbers = numbers_of(own, integers, before, self._zero(row, k))
        return _dequantized(numbers, *self._factors(row, k))

    def _before(self, row: Any, k: Any, distance: int) -> Any:
        """Emit the integer `distance` before column k, the first of a word; 0 before a group."""
        own, at = self.format, T.max(k - distance, 0)
        lows = [self._field("q_weight", row, at, own.low)]
        high = [self._field("q_high", row, at, own.high)] if own.high else []
        minimum = _integer(own, lows, high, 0)
        return e.let(T.Select(e.mod(k, own.group) == 0, T.uint32(0), minimum))

    def bytes_of(self, row: Any, k: Any) -> Any:
        """Emit the integers of the four columns from k on, a byte each of an uint32."""
        own = self.format
        low = [self._field("q_weight", row, k, own.low)]
        high = [self._field("q_high", row, k, own.high)] if own.high else []
        total: Any = T.uint32(0)
        for i in range(4):
            number = _integer(own, low, high, i)
            total = T.bitwise_or(total, T.shift_left(number, T.uint32(8 * i)))
        return total

    def zero(self, row: Any, k: Any) -> Any:
        """Emit the zero point of column k, float32, of a format with `zeros`."""
        return self._float("q_zero", row, k)

    def minimum(self, row: Any, k: Any) -> Any:
        """Emit the minimum of column k, float32, of a format with minimums."""
        minimum = self._float("q_min", row, k)
        if not self.format.two_levels:
            return e.let(minimum)
        byte = T.Cast("float32", self._byte("q_submin", row, k))
        return e.let(T.float32(0) - minimum * byte)

    def byte_of(self, row: Any, k: Any) -> Any:
        """Emit the byte s of column k, int32, of a format with two levels."""
        return self._byte("q_sub", row, k)

    def _tensor(self, name: str) -> Any:
        return self.tensors[list(self.format.columns).index(name)]

    def _adjacent(self, name: str, row: Any, first: Any, count: int) -> list[Any]:
        """Emit the load of adjacent words of a row."""
        if count % 4:
            return [e.let(self._tensor(name)[row, first + i]) for i in range(count)]
        return [w for i in range(0, count, 4) for w in e.vector(self._tensor(name), row, first + i)]

    def _field(self, name: str, row: Any, at: Any, bits: int) -> Any:
        """Emit the load of the word with field `at` of a row, shifted: the field is lowest."""
        per = 32 // bits
        shift = T.Cast("uint32", e.mod(at, per) * bits)
        return e.let(T.shift_right(self._tensor(name)[row, e.div(at, per)], shift))

    def _float(self, name: str, row: Any, k: Any) -> Any:
        """Emit the load of a float of the block of column k."""
        return e.load(self._tensor(name), row, e.div(k, self.format.block))

    def _byte(self, name: str, row: Any, k: Any) -> Any:
        """Emit the load of a byte of the group of column k, as int32."""
        field = self._field(name, row, e.div(k, self.format.group), 8)
        return T.Cast("int32", T.bitwise_and(field, T.uint32(255)))

    def scale_of(self, row: Any, k: Any) -> Any:
        """Emit the scale of column k, float32."""
        scale, own = self._float("q_scale", row, k), self.format
        if not own.two_levels:
            return e.let(scale)
        byte = self._byte("q_sub", row, k)
        if own.bytes is None:
            return e.let(scale * T.Cast("float32", byte - own.bias))
        return e.let(scale * float_of(e.let(byte), own.bytes))

    def _zero(self, row: Any, k: Any) -> Any:
        """Emit 2^23 plus the zero point of column k, float32: it is an integer, so this is exact.

        Codebooks have none.
        """
        if self.format.zeros:
            return e.let(self.zero(row, k) + T.float32(2**23))
        return T.float32(2**23 + self.format.zero)

    def _factors(self, row: Any, k: Any) -> tuple[Any, Any]:
        """Emit the scale and the minimum of column k; None for those that a word does not need."""
        own = self.format
        if self.has_scales:
            return None, None
        return self.scale_of(row, k), self.minimum(row, k) if own.minimum else None


def float_of(byte: Any, kind: str) -> Any:
    """Emit the float that a byte int32 is, which is finite; see `BlockFormat.bytes`.

    Devices may flush the subnormals of float32: byte 0 of "e8m0".
    """
    if kind == "e8m0":
        bits = T.max(T.shift_left(byte, T.int32(23)), T.int32(0x400000))
        return T.reinterpret("float32", bits)
    normal = T.reinterpret("float32", T.shift_left(byte + T.int32(960), T.int32(20)))
    return T.Select(byte < T.int32(8), T.Cast("float32", byte) * T.float32(2.0**-9), normal)


def _signed(byte: Any) -> Any:
    """Emit the float of FP8 that a byte int32 is: "e4m3" with a sign."""
    size = e.let(float_of(e.let(T.bitwise_and(byte, T.int32(127))), "e4m3"))
    return T.Select(byte < T.int32(128), size, T.float32(0) - size)


def _dequantized(numbers: list[Any], scale: Any, minimum: Any) -> list[Any]:
    """Emit numbers times their scale plus their minimum; None leaves the operation out."""
    if scale is None:
        return numbers
    if minimum is None:
        return [number * scale for number in numbers]
    return [e.fma(number, scale, minimum) for number in numbers]


def _integer(own: BlockFormat, low: list[Any], high: list[Any], index: int) -> Any:
    """Emit integer `index` of those in words with their lower and upper bits, uint32."""
    word, place = divmod(index * own.low, 32)
    field = _bits(low[word], place, own.low)
    if not high:
        return field
    word, place = divmod(index * own.high, 32)
    upper = _bits(high[word], place, own.high)
    return T.bitwise_or(field, T.shift_left(upper, T.uint32(own.low)))


def numbers_of(own: BlockFormat, integers: list[Any], before: list[Any], zero: Any) -> list[Any]:
    """Emit the values of consecutive integers as float32, before their scale.

    Args:
        own: the format.
        integers: the integers.
        before: in formats with a trellis, those before them in their group, the nearest first;
            those that are missing are 0.
        zero: 2^23 plus the zero point, float32.
    """
    if own.e4m3:
        return [_signed(e.let(T.Cast("int32", field))) for field in integers]
    if own.codebook:
        return [T.Cast("float32", _looked_up(own.codebook, e.let(field))) for field in integers]
    if own.trellis:
        return _along_path(own, [*reversed(before), *integers], len(before))
    magic = T.uint32(MAGIC)
    return [T.reinterpret("float32", T.bitwise_or(field, magic)) - zero for field in integers]


def _along_path(own: BlockFormat, integers: list[Any], first: int) -> list[Any]:
    """Emit the values of a path's integers from `first` on: see `wherry.ops.blocks`."""
    fields = [e.let(field) for field in integers]
    values = []
    for i in range(first, len(fields)):
        window = fields[i]
        for distance in range(1, min(own.memory, i) + 1):
            earlier = T.shift_left(fields[i - distance], T.uint32(distance * own.bits))
            window = T.bitwise_or(window, earlier)
        values.append(_trellis_value(e.let(window)))
    return values


def _trellis_value(window: Any) -> Any:
    """Emit the value of a window, float32."""
    for_q, for_p, start = (T.uint32(n) for n in TRELLIS_STEPS)
    q, p = T.bitwise_and(window, T.uint32(7)), T.shift_right(window, T.uint32(3))
    level = T.bitwise_and(q * for_q + p * for_p + start, T.uint32(63))
    u = e.let(T.Cast("float32", level) * T.float32(2 / 63) - T.float32(1))
    square = e.let(u * u)
    eighth = e.let(square * square)
    for _ in range(2):
        eighth = e.let(eighth * eighth)
    one, three, seventeen = (T.float32(127 * factor) for factor in TRELLIS_FACTORS)
    return T.round(u * (one + three * square + seventeen * eighth))


def _bits(word: Any, place: int, bits: int) -> Any:
    """Emit some bits of a word, from `place` on."""
    moved = T.shift_right(word, T.uint32(place)) if place else word
    return T.bitwise_and(moved, T.uint32(2**bits - 1))


def _looked_up(codebook: tuple[int, ...], field: Any) -> Any:
    """Emit the value of a codebook: a tree of selections over the bits of `field`."""
    values: list[Any] = [T.int32(value) for value in codebook]
    bit = 1
    while len(values) > 1:
        even = T.bitwise_and(field, T.uint32(bit)) == T.uint32(0)
        values = [T.Select(even, a, b) for a, b in zip(values[0::2], values[1::2], strict=True)]
        bit *= 2
    return values[0]
