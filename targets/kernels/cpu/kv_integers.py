"""Keys and values as integers, in the caches "int8" and "int4": x = q * scale (+ minimum).

A page's block of one head has, in bytes, one part after the other:

| int8 | int4 | |
|---|---|---|
| [e, 16] | [e, 16] | keys, transposed: their upper eight bits |
| [e / 2, 16] | | their lower four bits, two neighbours a byte |
| [16, 4] | [16, 4] | float32 scales of the keys, one for each token |
| [16, e] | [16, e / 2] | values; of 4 bits, a group's first half in the lower bits of bytes |
| [16, 4] | [16, e / group, 4] | scales of the values; of 4 bits, of each group: scale, minimum |

Keys have four bits more than values, because softmax multiplies the error of a score by the token's
weight. With the demo's scores 16 times as large (tests/acceptance/test_quality.py), keys of 8 bits
change a quarter of the tokens. Finer scales do not help: scales for groups of 8 elements still
change a sixth. 9 bits also change a sixth, 10 bits a ninth, 12 bits a sixteenth, and float16 (11
bits) two or three of a hundred. The remaining changes come from the values. docs/quantization.md
has the costs of 4 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import INTEGER_BITS, AttentionSpec, RopeAppendSpec, value_group

from . import vector as v

PAGE = 16  # tokens of a page
# Heads with smaller elements are stored as zeros, because the inverse of their scale would
# overflow.
_SMALLEST = 1e-30
_SCALES = 4 * PAGE  # bytes of a page's float32 scales
_UPPER = -(2**16)  # mask of the upper half of an int32


@dataclass(frozen=True, slots=True)
class Integers:
    """The layout of a head's block in a page, and the code that reads and writes it."""

    head_dim: int
    key_bits: int  # 12 or 8
    value_bits: int  # 8 or 4

    @classmethod
    def of(cls, spec: AttentionSpec | RopeAppendSpec) -> Integers | None:
        """Return the layout of a cache; None: it has floats."""
        bits = INTEGER_BITS.get(spec.kv_dtype)
        return cls(spec.head_dim, *bits) if bits else None

    @property
    def group(self) -> int:
        """Return how many elements of a value of 4 bits share a scale."""
        return value_group(self.head_dim)

    @property
    def keys_at_once(self) -> int:
        """Return how many neighbouring elements of keys are loaded and stored together."""
        return 2 if self.key_bits == 12 else 1

    @property
    def _key_scales(self) -> int:
        return self.head_dim * self.key_bits * PAGE // 8

    @property
    def key_bytes(self) -> int:
        """Return the bytes of a page's keys with their scales, after which the values begin."""
        return self._key_scales + _SCALES

    @property
    def _value_scales(self) -> int:
        return self.key_bytes + self.head_dim * self.value_bits * PAGE // 8

    def store_keys(self, at: Block, pair: Any, slot: Any, keys: Sequence[Any], lanes: int) -> None:
        """Emit the store of elements 2 * pair and 2 * pair + 1 of `lanes` int16 keys.

        The first key is of the token `slot` of the page.
        """

        def all_lanes(n: int) -> Any:
            return T.broadcast(T.int16(n), lanes) if lanes > 1 else T.int16(n)

        rows, parts = [2 * pair, 2 * pair + 1], list(keys)
        if self.key_bits == 12:
            low = [T.bitwise_and(key, all_lanes(15)) for key in keys]
            parts = [T.shift_right(key, all_lanes(4)) for key in keys]
            parts.append(T.bitwise_or(low[0], T.shift_left(low[1], all_lanes(4))))
            rows.append(self.head_dim + pair)
        for row, part in zip(rows, parts, strict=True):
            at.store(T.Cast(f"int8x{lanes}".removesuffix("x1"), part), row * PAGE + slot, lanes)

    def load_keys(self, at: Block, index: Any) -> list[Any]:
        """Emit the loads of elements of a page's 16 keys, each a vector float32x16.

        They are the `keys_at_once` elements from `index * keys_at_once` on.
        """
        if self.key_bits == 8:
            row = at.load(index * PAGE, PAGE, "int8")
            return [v.let(T.Cast("float32x16", row))]

        def all_lanes(n: int) -> Any:
            return T.broadcast(T.int32(n), PAGE)

        bytes_ = at.load((self.head_dim + index) * PAGE, PAGE, "uint8")
        both = v.let(T.Cast("int32x16", bytes_))
        lower = (T.bitwise_and(both, all_lanes(15)), T.shift_right(both, all_lanes(4)))
        keys = []
        for i, low in enumerate(lower):
            row = at.load((2 * index + i) * PAGE, PAGE, "int8")
            upper = T.shift_left(T.Cast("int32x16", row), all_lanes(4))
            keys.append(v.let(T.Cast("float32x16", T.bitwise_or(upper, low))))
        return keys

    def quantize_key(self, load: Load, store: Store) -> Any:
        """Emit the integers of a key; return its scale."""
        return _quantize(self.head_dim, 2 ** (self.key_bits - 1) - 1, load, store)

    def store_key_scale(self, at: Block, slot: Any, scale: Any) -> None:
        """Emit the store of the scale of a token's key."""
        at.store(T.reinterpret("int8x4", scale), self._key_scales + slot * 4, 4)

    def key_scales(self, at: Block) -> Any:
        """Emit the load of the scales of a page's 16 keys."""
        return at.floats(self._key_scales)

    def value_scales(self, at: Block) -> Any:
        """Emit the load of the scales of a page's 16 values of 8 bits."""
        return at.floats(self._value_scales)

    def store_value(self, at: Block, slot: Any, load: Load) -> None:
        """Emit the store of a token's value, and of its scales."""
        if self.value_bits == 4:
            with T.serial(self.head_dim // self.group) as i, T.sblock("group"):
                T.reads()
                T.writes()
                self._store_group(at, slot, i, load)
            return

        def store(start: Any, lanes: int, value: Any) -> None:
            code = v.cast(value, "int8", lanes)
            at.store(code, self.key_bytes + slot * self.head_dim + start, lanes)

        scale = _quantize(self.head_dim, 127, load, store)
        at.store(T.reinterpret("int8x4", scale), self._value_scales + slot * 4, 4)

    def _store_group(self, at: Block, slot: Any, i: Any, load: Load) -> None:
        """Emit the store of group `i` of a token's value in 4 bits.

        Minimum and scale have the upper 16 bits of a float32; the minimum is rounded down and the
        scale up, so that the integers 0 to 15 reach all elements.
        """
        lanes = self.group // 2
        halves = [v.let(load(i * self.group + start, lanes)) for start in (0, lanes)]
        zero = v.splat(0.0, lanes)
        most = v.let(v.max_lanes(v.let(v.maximum(*halves)), lanes))
        below = v.let(v.maximum(*(zero - half for half in halves)))
        least = v.let(T.reinterpret("int32", T.float32(0) - v.max_lanes(below, lanes)))
        down = T.bitwise_and(T.shift_right(least, T.int32(31)), T.int32(0xFFFF))
        least = v.let(T.bitwise_and(least + down, T.int32(_UPPER)))
        minimum = v.let(T.reinterpret("float32", least))
        exact = v.let(T.reinterpret("int32", (most - minimum) * T.float32(1 / 15)))
        upper = v.let(T.bitwise_and(exact + T.int32(0xFFFF), T.int32(_UPPER)))
        scale = v.let(T.reinterpret("float32", upper))
        some = scale > T.float32(_SMALLEST)
        inverse = v.let(T.Select(some, T.float32(1) / scale, T.float32(0)))
        low, high = (
            T.Cast(
                v.int_type(lanes),
                v.rint((x - v.splat(minimum, lanes)) * v.splat(inverse, lanes), lanes),
            )
            for x in halves
        )
        both = T.bitwise_or(low, T.shift_left(high, T.broadcast(T.int32(4), lanes)))
        first = self.key_bytes + slot * (self.head_dim // 2) + i * lanes
        at.store(T.Cast(f"int8x{lanes}", both), first, lanes)
        word = T.bitwise_or(least, T.shift_right(upper, T.int32(16)))
        at.store(T.reinterpret("int8x4", word), self._group_scale(slot, i), 4)

    def _group_scale(self, slot: Any, i: Any) -> Any:
        return self._value_scales + (slot * (self.head_dim // self.group) + i) * 4

    def load_value(
        self, at: Block, slot: Any, starts: Sequence[int], lanes: int, fma: bool
    ) -> list[Any]:
        """Emit the load of vectors float32 of a token's value; `starts` are their first elements.

        Of 8 bits they are integers, of 4 bits dequantized; vectors then have `group` / 2 lanes.
        """
        if self.value_bits == 8:
            first = self.key_bytes + slot * self.head_dim
            loads = [at.load(first + start, lanes, "int8") for start in starts]
            return [v.let(T.Cast(v.float_type(lanes), x)) for x in loads]
        values: list[Any] = []
        for i in sorted({start // self.group for start in starts}):
            first = self.key_bytes + slot * (self.head_dim // 2) + i * lanes
            both = v.let(T.Cast(v.int_type(lanes), at.load(first, lanes, "uint8")))
            word = v.let(at.load(self._group_scale(slot, i), 4, "int32", 1))
            scale = T.reinterpret("float32", T.shift_left(word, T.int32(16)))
            minimum = T.reinterpret("float32", T.bitwise_and(word, T.int32(_UPPER)))
            scales = [v.let(v.splat(x, lanes)) for x in (scale, minimum)]
            for half in (0, 1):
                if i * self.group + half * lanes not in starts:
                    continue
                bits = T.broadcast(T.int32(4 if half else 15), lanes)
                number = T.shift_right(both, bits) if half else T.bitwise_and(both, bits)
                x = T.Cast(v.float_type(lanes), number)
                values.append(v.let(v.fma(x, scales[0], scales[1], lanes, fma)))
        return values


Load = Callable[[Any, int], Any]  # start, lanes -> float32
Store = Callable[[Any, int, Any], None]  # start, lanes, int32


@dataclass(frozen=True, slots=True)
class Block:
    """A head's block in a page: its bytes."""

    Pages: Any
    page: Any
    head: Any

    def load(self, first: Any, count: int, element: str, lanes: int | None = None) -> Any:
        """Emit the load of `count` bytes as a vector of `element`."""
        dtype = f"{element}x{lanes or count}".removesuffix("x1")
        return T.reinterpret(dtype, self.Pages[self.page, 0, self.head, 0, v.span(first, count)])

    def floats(self, first: Any) -> Any:
        """Emit the load of 16 float32."""
        return v.let(self.load(first, _SCALES, "float32", PAGE))

    def store(self, value: Any, first: Any, count: int) -> None:
        """Emit the store of `count` int8."""
        dtype = f"{self.Pages.dtype}x{count}".removesuffix("x1")
        place = [self.page, 0, self.head, 0, v.span(first, count)]
        T.buffer_store(self.Pages, T.reinterpret(dtype, value), place)


def _quantize(elements: int, most: int, load: Load, store: Store) -> Any:
    """Emit round(most * x / max|x|) for the elements of a head; return the scale."""
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
