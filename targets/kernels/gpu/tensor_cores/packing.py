"""Packs weights into the layout of tensor cores (`layout.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearSpec
from wherry.ops.blocks import FORMATS

from .. import emit as e
from ..block_weights import BlockWeights, float_of
from ..weights import ZEROS, ExpertMatrix, stored_shapes
from .layout import (
    CHUNK,
    LANES,
    ROWS,
    STEPS,
    STORED,
    THREADS,
    UNITS,
    chunks,
    factors_at,
    offsets_at,
    scales_at,
    size,
    tiles,
)

_Load = Callable[[Any, Any], Any]  # of what is at (row, column)


def pack(spec: LinearSpec, experts: int | None = None) -> PrimFunc:
    """Return the packing PrimFunc (*stored, packed uint32 [size]).

    `experts` is the number of experts of an expert weight, None for other weights.
    """
    axis = () if experts is None else (experts,)
    stored = [
        (f"w{i}", (*axis, *shape), dtype) for i, (shape, dtype) in enumerate(stored_shapes(spec))
    ]
    count, of_each = experts or 1, tiles(spec)
    own_scheme = {"q4": _pack_q4, "q8": _pack_q8, "f16": _pack_f16}
    of_block = _pack_floats if STORED[spec.scheme].factors else _pack_block
    place = own_scheme.get(spec.scheme, of_block)
    packed: e.Parameter = ("packed", (size(spec, count),), "uint32")

    def emit(b: dict[str, Any], _sizes: dict[str, Any]) -> None:
        def block(tile: Any, chunk: Any, thread: Any) -> None:
            own = [b[name] for name, _, _ in stored]
            if experts is not None:
                expert = e.let(e.div(tile, of_each))
                own = [ExpertMatrix(tensor, expert) for tensor in own]
            place(_Chunk(spec, own, b["packed"], tile, chunk, count), thread)

        e.launch((count * of_each, chunks(spec)), THREADS, block)

    return e.prim_func([*stored, packed], emit)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Emits the packing of one chunk of a row tile."""

    spec: LinearSpec
    stored: list[Any]  # buffers of the stored tensors
    packed: Any
    tile: Any  # index of the row tile, among those of all experts
    chunk: Any
    experts: int

    @property
    def place(self) -> Any:
        """Return the index of the chunk, among all chunks of all row tiles."""
        wide = size(self.spec, self.experts) >= 2**31  # addresses have 32 bits where possible
        tile = T.Cast("int64", self.tile) if wide else self.tile
        return tile * chunks(self.spec) + self.chunk

    def rows_of(self, row: Any) -> Sequence[tuple[Any, Any]]:
        """Return (whether it exists, index of a valid row) for rows r and r + 8 of the tile."""
        tile = e.mod(self.tile, tiles(self.spec))
        own = [tile * ROWS + row + half for half in (0, ROWS // 2)]
        last = self.spec.out_features - 1
        return [(at <= last, e.let(T.min(at, last))) for at in own]

    def store(self, value: Any, at: Any) -> None:
        """Emit the store of a packed word."""
        T.buffer_store(self.packed, value, [at])

    def store_scales(self, thread: Any) -> None:
        """Emit the stores of all scales of the chunk."""
        scales = self.stored[1]
        at = scales_at(self.spec, self.experts)
        self.store_floats(thread, at, lambda row, group: scales[row, group])

    def store_floats(self, thread: Any, first: Any, load: _Load) -> None:
        """Emit the stores of a float16, or its byte, for each row and group, from `first` on."""
        own = STORED[self.spec.scheme]
        groups = CHUNK // own.group

        def store_bytes() -> None:
            rows = self.rows_of(thread)
            upper = [
                T.shift_right(_bits(load(row, self.chunk * groups + i)), T.uint32(8))
                for _, row in rows
                for i in range(groups)
            ]
            word = sum((T.shift_left(b, T.uint32(8 * i)) for i, b in enumerate(upper)), T.uint32(0))
            self.store(word, first + self.place * own.scales + thread)

        def store() -> None:
            group = self.chunk * groups + e.mod(thread, groups)
            pair = [
                T.Select(there, _bits(load(row, group)), T.uint32(0))
                for there, row in self.rows_of(e.div(thread, groups))
            ]
            self.store(_joined(*pair), first + self.place * own.scales + thread)

        e.when(thread < own.scales, store if own.scale_bytes == 2 else store_bytes)

    def store_factors(self, thread: Any, load: Callable[[Any], Any]) -> None:
        """Emit the stores of a float32 for each row, by the first chunk of a row tile."""
        first = factors_at(self.spec, self.experts) + self.tile * ROWS

        def store() -> None:
            for half, (_, row) in enumerate(self.rows_of(thread)):
                at = first + thread + half * (ROWS // 2)
                self.store(T.reinterpret("uint32", load(row)), at)

        e.when(T.And(self.chunk == 0, thread < ROWS // 2), store)


def _bytes(word: Any, places: Sequence[int], first: int) -> Any:
    """Emit neighbouring bytes of a word, from `first` on, moved to `places` of another word."""
    total: Any = T.uint32(0)
    for i, place in enumerate(places):
        byte = T.bitwise_and(T.shift_right(word, T.uint32(8 * (first + i))), T.uint32(255))
        total = T.bitwise_or(total, T.shift_left(byte, T.uint32(8 * place)))
    return total


def _zeros(bits: int) -> Any:
    """Return a word whose integers all stand for 0."""
    return T.uint32(sum(ZEROS[bits] << at for at in range(0, 32, bits)))


def _pack_q4(own: _Chunk, thread: Any) -> None:
    def four(row: Any, column: Any) -> Any:
        shift = T.Cast("uint32", e.mod(column, 8) * 4)
        return T.shift_right(own.stored[0][row, e.div(column, 8)], shift)

    _pack_nibbles(own, thread, four, 4)
    own.store_scales(thread)


def _pack_block(own: _Chunk, thread: Any) -> None:
    """Emit the packing of a block format."""
    kind, stored = FORMATS[own.spec.scheme], STORED[own.spec.scheme]
    weights = BlockWeights(own.spec, tuple(own.stored))

    def zero(row: Any, column: Any) -> Any:
        return _half(weights.zero(row, column) + T.float32(1024))

    def minimum(row: Any, column: Any) -> Any:
        return _half(weights.minimum(row, column))

    def of_group(load: _Load) -> _Load:
        return lambda row, group: load(row, group * stored.group)

    place = _pack_nibbles if stored.bits == 4 else _pack_bytes
    place(own, thread, weights.bytes_of)
    scale = of_group(lambda row, column: _half(weights.scale_of(row, column)))
    own.store_floats(thread, scales_at(own.spec, own.experts), scale)
    if stored.offsets:
        load = of_group(minimum if kind.minimum else zero)
        own.store_floats(thread, offsets_at(own.spec, own.experts), load)


def _pack_floats(own: _Chunk, thread: Any) -> None:
    """Emit the packing of a block format of floats."""
    kind, stored = FORMATS[own.spec.scheme], STORED[own.spec.scheme]
    weights = BlockWeights(own.spec, tuple(own.stored))
    unit = UNITS[stored.bits]

    def exponent(row: Any) -> Any:  # of the largest scale; from 14 on, so that none is infinite
        bits = T.reinterpret("int32", _largest(own.stored[1], row))
        return e.let(T.max(T.shift_right(bits, T.int32(23)), T.int32(14)))

    def scale(row: Any, group: Any) -> Any:
        column = group * stored.group
        if kind.bytes == "e8m0":
            below = weights.byte_of(row, column) - _largest(own.stored[2], row)
            return _half(_power(below + (127 + 15)))
        if kind.bytes is not None:
            return _half(float_of(e.let(weights.byte_of(row, column)), kind.bytes) * T.float32(64))
        return _half(weights.scale_of(row, column) * _power((127 + 127 + 14) - exponent(row)))

    def factor(row: Any) -> Any:
        if kind.bytes == "e8m0":
            most = _largest(own.stored[2], row)
            return own.stored[1][row, 0] * _power(most) * T.float32(unit / 2**15)
        if kind.bytes is not None:
            return own.stored[1][row, 0] * T.float32(unit / 64)
        if not stored.group:
            return own.stored[1][row, 0] * T.float32(unit)
        return _power(exponent(row) - 14) * T.float32(unit)

    place = _pack_nibbles if stored.bits == 4 else _pack_bytes
    place(own, thread, weights.bytes_of)
    if stored.group:
        own.store_floats(thread, scales_at(own.spec, own.experts), scale)
    own.store_factors(thread, factor)


def _largest(tensor: Any, row: Any) -> Any:
    """Emit the size of a row's largest float, or as an int32 a row of uint32's largest byte."""
    words = str(tensor.dtype) == "uint32"
    most = e.Variable(T.int32(0) if words else T.float32(0))
    with T.serial(tensor.shape[-1]) as i:
        word = e.let(tensor[row, i])
        for at in range(0, 32, 8) if words else ():
            byte = T.bitwise_and(T.shift_right(word, T.uint32(at)), T.uint32(255))
            most.set(T.max(most.value, T.Cast("int32", byte)))
        if not words:
            most.set(T.max(most.value, T.abs(word)))
    return e.let(most.value)


def _power(exponent: Any) -> Any:
    """Emit 2^(exponent - 127) as float32, 0 below float32's normal numbers."""
    return T.reinterpret("float32", T.shift_left(T.max(exponent, T.int32(0)), T.int32(23)))


def _half(value: Any) -> Any:
    return T.Cast("float16", value)


def _pack_nibbles(own: _Chunk, thread: Any, load: _Load, bits: int = 8) -> None:
    """Emit the packing of 4 bits; `load(row, column)` returns four columns' numbers of `bits`."""
    lane, step = e.let(e.div(thread, STEPS)), e.mod(thread, STEPS)
    column = e.let(own.chunk * CHUNK + e.mod(lane, 4) * 16 + step * 4)
    total: Any = T.uint32(0)
    for half, (there, row) in enumerate(own.rows_of(e.div(lane, 4))):
        four = e.let(T.Select(there, load(row, column), _zeros(bits)))
        for i in range(4):
            number = T.bitwise_and(T.shift_right(four, T.uint32(bits * i)), T.uint32(15))
            place = half + i // 2 * 2 + i % 2 * 4
            total = T.bitwise_or(total, T.shift_left(number, T.uint32(4 * place)))
    own.store(total, own.place * THREADS + thread)


def _pack_q8(own: _Chunk, thread: Any) -> None:
    _pack_bytes(own, thread, lambda row, column: own.stored[0][row, e.div(column, 4)])
    own.store_scales(thread)


def _pack_bytes(own: _Chunk, thread: Any, load: _Load) -> None:
    """Emit the packing of 8 bits; `load(row, column)` returns the numbers of four columns."""
    lane, step = e.let(e.mod(e.div(thread, 2), LANES)), e.let(_step_q8(thread))
    column = e.let(own.chunk * CHUNK + e.mod(lane, 4) * 16 + step * 4)
    four = [
        e.let(T.Select(there, load(row, column), _zeros(8)))
        for there, row in own.rows_of(e.div(lane, 4))
    ]
    at = e.let((own.place * THREADS + thread) * 2)
    for pair in range(2):  # pairs of columns
        parts = [_bytes(w, (half, half + 2), 2 * pair) for half, w in enumerate(four)]
        own.store(T.bitwise_or(*parts), at + pair)


def _step_q8(thread: Any) -> Any:
    return e.div(thread, 2 * LANES) * 2 + e.mod(thread, 2)


def _pack_f16(own: _Chunk, thread: Any) -> None:
    step, lane = e.let(e.div(thread, LANES)), e.let(e.mod(thread, LANES))
    first = own.chunk * CHUNK + e.mod(lane, 4) * 16 + step * 4
    for half, (there, row) in enumerate(own.rows_of(e.div(lane, 4))):
        for i in range(2):
            pair = [
                T.Select(there, _bits(own.stored[0][row, first + 2 * i + j]), T.uint32(0))
                for j in range(2)
            ]
            own.store(_joined(*pair), (own.place * THREADS + thread) * 4 + 2 * i + half)


def _bits(half: Any) -> Any:
    return T.Cast("uint32", T.reinterpret("uint16", half))


def _joined(low: Any, high: Any) -> Any:
    return T.bitwise_or(low, T.shift_left(high, T.uint32(16)))
