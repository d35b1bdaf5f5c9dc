"""Tiles of pairs of rows, for Arm's matrix instructions (i8mm): `int8_tile` with the same bits.

An instruction multiplies two columns by two rows, eight elements of each, which is twice the
products of a dot product. Its vector of columns is made from the packed words of `int_layout` by an
interleaving, so that one packed weight serves all instruction sets; a block of rows unpacks each
panel once. Sums of a pair and four columns (a, b, c, d) are two vectors, (a0, a1, b0, b1) and
(c0, c1, d0, d1) for the rows 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .int8_dot import Int8Dot, nibbles
from .int_tiles import Epilogue, float_scale, prefetch_weights
from .pair_rows import BIAS, OCTETS, PairRows
from .tiles import PANEL

LEAST = 8  # rows of a block that pay for its unpacking
HEIGHTS = (8, 4, 2)  # row counts of tiles
_LANES = 4
_PARTS = PANEL // _LANES
_EVEN, _ODD = [0, 2, 4, 6], [1, 3, 5, 7]
_LOW, _HIGH = [0, 4, 1, 5], [2, 6, 3, 7]  # interleaved halves of two vectors
_TWICE = ([0, 0, 1, 1], [2, 2, 3, 3])


@dataclass(frozen=True, slots=True)
class PairWeights:
    """Buffers of an unpacked panel, by group and part of four columns."""

    octets: Any  # int32 [G, 4, 8 * OCTETS]: of each octet, the first two columns, the last two
    scales: Any  # float32 [G, 4, 8]: scales of the first two columns, each twice, the last two

    @classmethod
    def unpack(cls, W: Any, S: Any, p: Any, dot: Int8Dot) -> PairWeights:
        """Emit the unpacking of panel p, in an enclosing sblock."""
        g = int(S.shape[1])
        own = cls(
            T.sblock_alloc_buffer((g, _PARTS, 2 * _LANES * OCTETS), "int32"),
            T.sblock_alloc_buffer((g, _PARTS, 2 * _LANES), "float32"),
        )
        with T.serial(g) as group, T.sblock("unpack"):
            T.reads()
            T.writes()
            prefetch_weights(W, p, group, LEAST)
            for part in range(_PARTS):
                own._unpack_part(W, S, (p, group, part), dot)
        return own

    def _unpack_part(self, W: Any, S: Any, at: tuple[Any, Any, int], dot: Int8Dot) -> None:
        p, g, part = at
        columns = v.span(_LANES * part, _LANES)
        words = [v.let(W[p, g, j, columns]) for j in range(int(W.shape[2]))]
        for half, lanes in enumerate((_LOW, _HIGH)):
            octets = [v.let(v.shuffle(words[j : j + 2], lanes)) for j in range(0, len(words), 2)]
            if len(octets) < OCTETS:  # two octets of nibbles
                octets = nibbles(octets)
            for o, octet in enumerate(octets):
                T.buffer_store(self.octets, octet, [g, part, _at(2 * o + half)])
        scale = v.let(float_scale(S[p, g, columns], S.dtype, dot))
        for half, lanes in enumerate(_TWICE):
            T.buffer_store(self.scales, v.shuffle([scale], lanes), [g, part, _at(half)])


def _at(vector: int) -> Any:
    return v.span(_LANES * vector, _LANES)


def pair_tile(
    x: PairRows, weights: PairWeights, dot: Int8Dot, first: Any, height: int, epilogue: Epilogue
) -> None:
    """Emit `epilogue` with a panel's sums for `height` rows from pair `first` on."""
    count = height // 2
    with T.sblock("pairs"):
        T.reads()
        T.writes()
        rows = [T.sblock_alloc_buffer((PANEL,), "float32") for _ in range(height)]
        halves = [T.sblock_alloc_buffer((_LANES,), "float32") for _ in range(height)]
        for part in range(_PARTS):
            for half in halves:
                T.buffer_store(half, v.splat(0.0, _LANES), [_at(0)])
            with T.serial(weights.octets.shape[0]) as g, T.sblock("group"):
                T.reads()
                T.writes()
                _group(x, weights, (first, g, part), halves, dot)
            for i in range(count):
                both = [half[_at(0)] for half in halves[2 * i : 2 * i + 2]]
                for row, lanes in ((2 * i, _EVEN), (2 * i + 1, _ODD)):
                    T.buffer_store(rows[row], v.shuffle(both, lanes), [_at(part)])
        for i, row in enumerate(rows):
            epilogue(i, row[v.span(0, PANEL)])


def _group(
    x: PairRows, weights: PairWeights, at: tuple[Any, Any, int], sums: list[Any], dot: Int8Dot
) -> None:
    """Emit sums += scaled sums of a group and part, for pairs of rows; at: first pair, g, part."""
    first, g, part = at
    octets = [v.let(weights.octets[g, part, _at(i)]) for i in range(2 * OCTETS)]
    scales = [v.let(weights.scales[g, part, _at(half)]) for half in (0, 1)]
    for i in range(len(sums) // 2):
        totals = [x.start(first + i, g, copy) for copy in (0, 1)]
        for o in range(OCTETS):
            row = v.let(x.octet(first + i, g, o))
            totals = [
                _multiply(dot, total, octets[2 * o + half], row)
                for half, total in enumerate(totals)
            ]
        scale = v.let(x.scale(first + i, g))
        bias = v.splat(BIAS, _LANES) if x.exact else scale
        for half, total in enumerate(totals):
            own = sums[2 * i + half]
            number = T.reinterpret("float32x4", total) - bias
            factor = scales[half] * scale if x.exact else scales[half]
            T.buffer_store(own, v.fma(number, factor, own[_at(0)], _LANES), [_at(0)])


def _multiply(dot: Int8Dot, total: Any, weights: Any, rows: Any) -> Any:
    """Emit total (int32x4) + two columns of weights times two rows (int8x16)."""
    name = f"llvm.aarch64.neon.{dot.matrix}.v4i32.v16i8"
    return T.call_llvm_pure_intrin("int32x4", name, total, T.reinterpret("int8x16", weights), rows)
