"""Packed integer weights: the layout that all kernels of the schemes "q4" and "q8" read.

    W int32 [ceil(N/16), G, words, 16]    S scale_dtype [ceil(N/16), G, 16]    G = ceil(K/32)

W[p, g, j, c] belongs to row 16p + c and to group g, the weights from k = 32g. "q4" has four words:
the low nibble of byte b is the weight 4j + b of the group, its high nibble 16 + 4j + b. "q8" has
eight: byte b is the weight 4j + b. So a row's words (for q4, split into nibbles) are eight operands
    of an int8 dot product with consecutive activations.
Value = (integer - zero) * S. Kernels add to the exponent bits of S, so no |S| is below `LEAST`:
where the stored scale is smaller, and in rows beyond N, all integers are the zero point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearSpec, Scheme, script

from .tiles import PANEL, panels

GROUP = 32  # weights that share a scale
LEAST = {"float16": 2.0**-24, "float32": 2.0**-60}  # weights with smaller scales are stored as 0
Shape = tuple[tuple[int, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntLayout:
    """The places of a group's integers in its packed words."""

    bits: int
    zero: int  # zero point: the integer that stands for 0

    @property
    def words(self) -> int:
        """Return the number of words per row and group, which equals the stored layout's."""
        return self.bits

    @property
    def mask(self) -> int:
        """Return the bit mask of one integer."""
        return (1 << self.bits) - 1

    def places(self, word: int) -> list[tuple[int, int]]:
        """Return (shift in the word, index in the group) of each integer in a word."""
        halves = 8 // self.bits
        return [
            (8 * b + self.bits * half, 16 * half + 4 * word + b)
            for b in range(4)
            for half in range(halves)
        ]


LAYOUTS: dict[Scheme, IntLayout] = {
    "q4": IntLayout(bits=4, zero=7),
    "q8": IntLayout(bits=8, zero=127),
}


def groups(in_features: int) -> int:
    """Return the number of groups along K; the last group may be partly used."""
    return -(-in_features // GROUP)


def packed_shapes(spec: LinearSpec) -> tuple[Shape, Shape]:
    """Return shape and dtype of the packed tensors W and S."""
    count, g = panels(spec.out_features), groups(spec.in_features)
    words = LAYOUTS[spec.scheme].words
    return ((count, g, words, PANEL), "int32"), ((count, g, PANEL), str(spec.scale_dtype))


def pack_integers(spec: LinearSpec) -> PrimFunc:
    """Return the packing PrimFunc (q_weight uint32 [N, G * words], q_scale [N, G], W, S)."""
    n, g = spec.out_features, groups(spec.in_features)
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec)
    words = shape[2]
    scheme, empty = spec.scheme, empty_word(spec.scheme)
    least = T.float32(LEAST[scale_dtype])

    @script.prim_func(s_tir=True, private=True)
    def pack(q_weight: T.handle, q_scale: T.handle, packed: T.handle, scales: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        Q = T.match_buffer(q_weight, (n, words * g), "uint32")
        QS = T.match_buffer(q_scale, (n, g), scale_dtype)
        W = T.match_buffer(packed, shape, "int32")
        S = T.match_buffer(scales, scale_shape, scale_dtype)
        for p in T.parallel(shape[0]):
            for i, c in T.grid(g, PANEL):
                with T.sblock("pack"):
                    T.reads()
                    T.writes()
                    row = T.min(p * PANEL + c, n - 1)
                    scale = T.Cast("float32", QS[row, i])
                    used = T.And(p * PANEL + c < n, T.abs(scale) >= least)
                    S[p, i, c] = T.if_then_else(used, QS[row, i], T.Cast(scale_dtype, least))
                    for j in T.unroll(words):
                        W[p, i, j, c] = T.if_then_else(
                            used, word_of(scheme, _row(Q, row), i, j), empty
                        )

    return pack


def empty_word(scheme: Scheme) -> Any:
    """Return a packed word whose integers are all the zero point."""
    return T.int32(0x77777777 if scheme == "q4" else 0x7F7F7F7F)


def _row(Q: Any, row: Any) -> Callable[[Any], Any]:
    return lambda at: Q[row, at]


def word_of(scheme: Scheme, stored: Callable[[Any], Any], g: Any, j: Any) -> Any:
    """Emit the packed word j of group g, from a row's stored words `stored(index)`."""
    if scheme == "q8":
        return T.reinterpret("int32", stored(g * 8 + j))
    return _interleaved(stored, g, j)


def _interleaved(stored: Callable[[Any], Any], g: Any, j: Any) -> Any:
    """Emit a word of eight nibbles.

    The low halves of its four bytes are the weights from 4j on, the high halves those from 16 + 4j
    on.
    """
    low, high = (stored(g * 4 + half + j // 2) >> T.Cast("uint32", j % 2 * 16) for half in (0, 2))
    word = T.uint32(0)
    for b in range(4):
        nibble = T.uint32(15)
        word = word | ((low >> T.uint32(4 * b)) & nibble) << T.uint32(8 * b)
        word = word | ((high >> T.uint32(4 * b)) & nibble) << T.uint32(8 * b + 4)
    return T.reinterpret("int32", word)
