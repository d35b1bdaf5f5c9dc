"""Weights as tensor cores multiply by them: packed once, when a model is first loaded.

A weight [N, K] is cut into row tiles of 16 rows (the last filled with zeros) and chunks of 64
columns. A chunk of a row tile is four multiplications of 16 columns each. Lane 4 r + c of a warp
(c < 4) has in step s the columns 16 c + 4 s + (0, 1, 2, 3) of rows r and r + 8: so a lane's columns
of a chunk lie side by side in a row of x, and in one group of 32 with its scale. Which columns a
lane has is free, as long as x has the same. The order, in uint32, all in one tensor:

    q4   words  [tiles, chunks, lane, step]    eight numbers of 4 bits
         scales [tiles, chunks, lane / 2]      those of rows r and r + 8, float16
    f16  words  [tiles, chunks, step, lane, 4] two numbers each

Of the four pairs (row r, columns 0 and 1), (row r + 8, the same), (row r, columns 2 and 3),
(row r + 8, the same), pair i is word i in float16; in 4 bits its numbers are nibbles i and i + 4,
from where two operations make two float16 of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ...specs import LinearSpec
from .. import emit as e
from ..weights import stored_parameters

ROWS = 16  # of a row tile
CHUNK = 64  # columns
STEPS = 4  # of a chunk
LANES = 32  # of a warp
_THREADS = LANES * STEPS
_NIBBLE, _ZEROS = 15, 0x77777777  # eight numbers that stand for 0


def fits(spec: LinearSpec) -> bool:
    """Whether there is a layout for a weight."""
    float16 = spec.scheme == "f16" or (spec.scheme == "q4" and spec.scale_dtype == "float16")
    return float16 and spec.in_features % CHUNK == 0


def tiles(spec: LinearSpec) -> int:
    """Row tiles of a weight."""
    return -(-spec.out_features // ROWS)


def chunks(spec: LinearSpec) -> int:
    """Chunks of a row."""
    return spec.in_features // CHUNK


def scales_at(spec: LinearSpec) -> int:
    """Where the scales of 4-bit weights begin, in uint32."""
    return tiles(spec) * chunks(spec) * LANES * STEPS


def size(spec: LinearSpec) -> int:
    """Of the packed tensor, in uint32."""
    pieces = tiles(spec) * chunks(spec)
    return pieces * LANES * STEPS * 4 if spec.scheme == "f16" else pieces * (LANES * STEPS + ROWS)


def pack(spec: LinearSpec) -> PrimFunc:
    """(*stored, packed uint32 [size])."""
    parameters = stored_parameters(spec)

    def emit(b: dict[str, Any], _sizes: dict[str, Any]) -> None:
        stored = [b[name] for name, _, _ in parameters]
        place = _pack_q4 if spec.scheme == "q4" else _pack_f16
        e.launch(
            (chunks(spec), tiles(spec)),
            _THREADS,
            lambda chunk, tile, thread: place(spec, stored, b["packed"], chunk, tile, thread),
        )

    func = e.prim_func([*parameters, ("packed", (size(spec),), "uint32")], emit)
    return func


def _rows_of(spec: LinearSpec, tile: Any, row: Any) -> Sequence[tuple[Any, Any]]:
    """Rows r and r + 8 of a tile: whether there is one, and one that is there."""
    own = [tile * ROWS + row + half for half in (0, ROWS // 2)]
    last = spec.out_features - 1
    return [(at <= last, e.let(T.min(at, last))) for at in own]


def _pack_q4(
    spec: LinearSpec, stored: list[Any], packed: Any, chunk: Any, tile: Any, thread: Any
) -> None:
    words, scales = stored
    piece = tile * chunks(spec) + chunk
    lane, step = e.let(e.div(thread, STEPS)), e.let(e.mod(thread, STEPS))
    column = e.mod(lane, 4)
    word = chunk * (CHUNK // 8) + column * 2 + e.div(step, 2)
    shift = T.Cast("uint32", e.mod(step, 2) * 16)
    total: Any = T.uint32(0)
    for half, (there, row) in enumerate(_rows_of(spec, tile, e.div(lane, 4))):
        four = e.let(T.shift_right(T.Select(there, words[row, word], T.uint32(_ZEROS)), shift))
        for i in range(4):  # columns
            nibble = T.bitwise_and(T.shift_right(four, T.uint32(4 * i)), T.uint32(_NIBBLE))
            place = half + i // 2 * 2 + i % 2 * 4
            total = T.bitwise_or(total, T.shift_left(nibble, T.uint32(4 * place)))
    T.buffer_store(packed, total, [piece * _THREADS + thread])

    def store_scales() -> None:
        group = chunk * 2 + e.mod(thread, 2)
        pair = [
            T.Select(there, _bits(scales[row, group]), T.uint32(0))
            for there, row in _rows_of(spec, tile, e.div(thread, 2))
        ]
        at = scales_at(spec) + piece * ROWS + thread
        T.buffer_store(packed, _joined(*pair), [at])

    e.when(thread < ROWS, store_scales)


def _pack_f16(
    spec: LinearSpec, stored: list[Any], packed: Any, chunk: Any, tile: Any, thread: Any
) -> None:
    (weight,) = stored
    piece = tile * chunks(spec) + chunk
    step, lane = e.let(e.div(thread, LANES)), e.let(e.mod(thread, LANES))
    first = chunk * CHUNK + e.mod(lane, 4) * 16 + step * 4
    for half, (there, row) in enumerate(_rows_of(spec, tile, e.div(lane, 4))):
        for i in range(2):
            pair = [
                T.Select(there, _bits(weight[row, first + 2 * i + j]), T.uint32(0))
                for j in range(2)
            ]
            at = (piece * _THREADS + thread) * 4 + 2 * i + half
            T.buffer_store(packed, _joined(*pair), [at])


def _bits(half: Any) -> Any:
    return T.Cast("uint32", T.reinterpret("uint16", half))


def _joined(low: Any, high: Any) -> Any:
    return T.bitwise_or(low, T.shift_left(high, T.uint32(16)))
