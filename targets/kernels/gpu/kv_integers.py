"""Keys and values as integers, in the caches "int8" and "int4", on GPUs.

A token's key and value of one head are the bytes that `wherry.ops.page_shape` describes, in words
of 32 bits, because some devices address no bytes. A thread stores or loads whole words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import INTEGER_BITS, AttentionSpec, RopeAppendSpec, value_group

from . import emit as e
from .batch_table import element

Load = Callable[[Any], Any]  # function: k -> element k of a head, float32
_SMALLEST = 1e-30  # the inverse of a smaller scale would overflow: such heads become zeros
_UPPER = 0xFFFF0000  # the half of a float32 that scales and minimums of 4 bits keep


def _word(number: int) -> Any:
    return T.uint32(number)


@dataclass(frozen=True, slots=True)
class Place:
    """The words of one token and KV head in a page."""

    pages: Any
    page: Any
    kv_head: Any
    token: Any

    def _index(self, word: Any) -> tuple[Any, ...]:
        return element(self.pages, self.page, 0, self.kv_head, self.token, word)

    def load(self, word: Any) -> Any:
        """Emit the load of a word."""
        return e.let(self.pages[self._index(word)])

    def number(self, word: Any) -> Any:
        """Emit the load of a float32."""
        return e.let(T.reinterpret("float32", self.pages[self._index(word)]))

    def store(self, word: Any, value: Any) -> None:
        """Emit the store of a word."""
        T.buffer_store(self.pages, value, list(self._index(word)))


@dataclass(frozen=True, slots=True)
class Integers:
    """The layout of a token's key and value, and the code that reads and writes them."""

    head_dim: int
    key_bits: int  # 12 or 8
    value_bits: int  # 8 or 4

    @classmethod
    def of(cls, spec: AttentionSpec | RopeAppendSpec) -> Integers | None:
        """Return the layout of a cache; None: it has floats."""
        bits = INTEGER_BITS.get(spec.kv_dtype)
        return cls(spec.head_dim, *bits) if bits else None

    @property
    def _key_scale(self) -> int:
        return self.head_dim * self.key_bits // 32

    @property
    def _value(self) -> int:
        return self._key_scale + 1

    @property
    def _value_scales(self) -> int:
        return self._value + self.head_dim * self.value_bits // 32

    def keys(self, at: Place, k: Any) -> list[Any]:
        """Emit the loads of elements k to k + 3 of a key, without its scale; 4 divides k."""
        upper = at.load(e.div(k, 4))
        bytes_ = [T.bitwise_and(T.shift_right(upper, _word(8 * i)), _word(255)) for i in range(4)]
        parts = [T.bitwise_xor(byte, _word(128)) for byte in bytes_]
        if self.key_bits == 8:
            return [T.Cast("float32", part) - T.float32(128) for part in parts]
        low = at.load(self.head_dim // 4 + e.div(k, 8))
        first = T.Cast("uint32", e.mod(k, 8)) * _word(4)
        numbers = [
            part * _word(16) + T.bitwise_and(T.shift_right(low, first + _word(4 * i)), _word(15))
            for i, part in enumerate(parts)
        ]
        return [T.Cast("float32", number) - T.float32(2048) for number in numbers]

    def key_scale(self, at: Place) -> Any:
        """Emit the load of the factor of a key's elements."""
        return at.number(self._key_scale)

    def value(self, at: Place, k: Any) -> Any:
        """Emit the load of element k of a value."""
        if self.value_bits == 8:
            word = at.load(self._value + e.div(k, 4))
            byte = T.shift_right(word, T.Cast("uint32", e.mod(k, 4)) * _word(8))
            number = T.bitwise_xor(T.bitwise_and(byte, _word(255)), _word(128))
            scale = at.number(self._value_scales)
            return (T.Cast("float32", number) - T.float32(128)) * scale
        size = value_group(self.head_dim)
        half, group = size // 2, e.let(e.div(k, size))
        byte = e.let(group * half + e.mod(k, half))
        shift = e.mod(byte, 4) * 8 + e.div(e.mod(k, size), half) * 4
        word = at.load(self._value + e.div(byte, 4))
        number = T.bitwise_and(T.shift_right(word, T.Cast("uint32", shift)), _word(15))
        scales = at.load(self._value_scales + group)
        scale = T.reinterpret("float32", T.shift_left(scales, _word(16)))
        minimum = T.reinterpret("float32", T.bitwise_and(scales, _word(_UPPER)))
        return e.fma(T.Cast("float32", number), scale, minimum)

    def store_key(self, at: Place, key: Load, threads: int, thread: Any) -> None:
        """Emit the store of a key, which all threads of the block can load."""
        most = 2 ** (self.key_bits - 1) - 1
        inverse = self._store_scale(at, self._key_scale, key, most, thread)

        def number(k: Any) -> Any:
            return _quantized(key(k), inverse, most + 1)

        if self.key_bits == 8:
            self._store_words(at, 0, lambda k: number(k), threads, thread)
            return
        self._store_words(at, 0, lambda k: T.shift_right(number(k), _word(4)), threads, thread)

        def lower(w: Any) -> None:
            parts = [T.bitwise_and(number(w * 8 + i), _word(15)) for i in range(8)]
            at.store(self.head_dim // 4 + w, _joined(parts, 4))

        e.over(self.head_dim // 8, threads, thread, lower)

    def store_value(self, at: Place, value: Load, threads: int, thread: Any) -> None:
        """Emit the store of a value, which all threads of the block can load."""
        if self.value_bits == 8:
            inverse = self._store_scale(at, self._value_scales, value, 127, thread)
            self._store_words(
                at, self._value, lambda k: _quantized(value(k), inverse, 128), threads, thread
            )
            return
        size = value_group(self.head_dim)
        words = size // 8  # of a group

        def store(w: Any) -> None:
            group = e.let(e.div(w, words))
            first = e.let(group * size + e.mod(w, words) * 4)
            least, scale = _range(value, e.let(group * size), size)
            minimum = e.let(T.reinterpret("float32", least))
            step = e.let(T.reinterpret("float32", scale))
            inverse = e.let(_inverse(step, 1))
            parts = [
                T.Cast("uint32", T.floor((value(first + i + half) - minimum) * inverse + 0.5))
                for i in range(4)
                for half in (0, size // 2)
            ]
            at.store(self._value + w, _joined(parts, 4))
            both = T.bitwise_or(least, T.shift_right(scale, _word(16)))
            e.when(e.mod(w, words) == 0, lambda: at.store(self._value_scales + group, both))

        e.over(self.head_dim // 8, threads, thread, store)

    def _store_scale(self, at: Place, word: int, x: Load, most: int, thread: Any) -> Any:
        """Emit the store of a head's scale; return its inverse."""
        largest = e.private(1)
        T.buffer_store(largest, T.float32(0), [0])
        with T.serial(self.head_dim) as k:
            size = e.let(x(k))
            T.buffer_store(largest, T.max(largest[0], T.max(size, T.float32(0) - size)), [0])
        scale = e.let(largest[0] * e.number(1 / most))
        bits = T.reinterpret("uint32", scale)
        e.when(thread == 0, lambda: at.store(word, bits))
        return e.let(_inverse(e.let(largest[0]), most))

    def _store_words(self, at: Place, first: int, number: Load, threads: int, thread: Any) -> None:
        """Emit the store of bytes from word `first` on; `number(k)` is byte k plus 128."""

        def store(w: Any) -> None:
            bytes_ = [T.bitwise_xor(number(w * 4 + i), _word(128)) for i in range(4)]
            at.store(first + w, _joined(bytes_, 8))

        e.over(self.head_dim // 4, threads, thread, store)


def _inverse(x: Any, most: int) -> Any:
    return T.Select(x > T.float32(_SMALLEST), T.float32(most) / x, T.float32(0))


def _quantized(x: Any, inverse: Any, zero: int) -> Any:
    """Return the integer of x, plus `zero`, as uint32."""
    return e.let(T.Cast("uint32", T.floor(x * inverse + T.float32(zero + 0.5))))


def _joined(parts: list[Any], bits: int) -> Any:
    """Return a word of numbers of `bits` bits, the first in the lowest."""
    word = parts[0]
    for i, part in enumerate(parts[1:], 1):
        word = T.bitwise_or(word, T.shift_left(part, _word(bits * i)))
    return word


def _range(x: Load, first: Any, size: int) -> tuple[Any, Any]:
    """Emit the bits of minimum and scale of the group from element `first` on.

    Minimum and scale have 16 bits; the minimum is rounded down and the scale up, so that the
    integers 0 to 15 reach all elements.
    """
    ends = e.private(2)
    for i in (0, 1):
        T.buffer_store(ends, x(first), [i])
    with T.serial(size - 1) as k:
        other = e.let(x(first + k + 1))
        T.buffer_store(ends, T.min(ends[0], other), [0])
        T.buffer_store(ends, T.max(ends[1], other), [1])
    exact = e.let(T.reinterpret("uint32", ends[0]))
    down = T.shift_right(exact, _word(31)) * _word(0xFFFF)
    least = e.let(T.bitwise_and(exact + down, _word(_UPPER)))
    span = ends[1] - T.reinterpret("float32", least)
    step = e.let(T.reinterpret("uint32", e.let(span * e.number(1 / 15))))
    return least, e.let(T.bitwise_and(step + _word(0xFFFF), _word(_UPPER)))
