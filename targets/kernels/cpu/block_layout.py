"""Packed weights of block formats (`wherry.ops.blocks`), for kernels with an int8 dot product.

    W int32  [ceil(N/16), K/32, words, 16]   integers, as in `int_layout`, then their upper bits
    S floats [ceil(N/16), ceil(K/block), 1 | 2, 16]   d, and the minimum, dmin or zero point; 0 in
                                                      rows beyond N
    U int32  [ceil(N/16), ceil(K/64), 16]   with two levels: the bytes of two groups of 32, lowest
                                      first; of one group ([., K/32, .]) if a group has four bytes

W[p, g, j, c] belongs to row 16p + c and to the weights from k = 32g, which are eight operands of
four: operand o has the weights 4o to 4o + 3. Byte b of an upper word has bits of the weights
4o + b: with one upper bit, bit o of the only word; with two, the bits from 2 (o % 4) on of word
o // 4. Words of formats with two lower bits are like upper words with two bits. The bytes of a
group in U are s and m, or, if 16 weights share a scale, the s of both halves and then their m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearSpec
from wherry.ops.blocks import FORMATS, BlockFormat

from .function import Parameter, prim_func
from .int_layout import GROUP, Shape, groups, word_of
from .tiles import PANEL, panels

OPERANDS = 8  # of four weights each, in a group of 32
# Formats with kernels: their integers, or the values of a codebook, are the operands of a dot
# product, with a scale for each.
SUPPORTED = frozenset(name for name, own in FORMATS.items() if not own.e4m3)


def words(own: BlockFormat) -> int:
    """Return the number of words of a row and group in W."""
    return own.low + own.high


def levels(own: BlockFormat) -> tuple[str, ...]:
    """Return the names of the stored tensors that are in S, in their order."""
    return tuple(name for name in ("q_scale", "q_min", "q_zero") if name in own.columns)


def sub_bytes(own: BlockFormat) -> int:
    """Return the number of bytes of a group of 32 in U, 2 or 4; 0 with one level of scales."""
    if not own.two_levels:
        return 0
    return max(2, GROUP // own.group * (1 + own.minimum))


def packed_parameters(spec: LinearSpec, count: int | None = None) -> list[Parameter]:
    """Return name, shape and dtype of the packed tensors; `count`: number of panels of experts."""
    own, count = FORMATS[spec.scheme], count or panels(spec.out_features)
    k, g = spec.in_features, groups(spec.in_features)
    parameters: list[Parameter] = [
        ("W", (count, g, words(own), PANEL), "int32"),
        ("S", (count, -(-k // own.block), len(levels(own)), PANEL), own.floats),
    ]
    sub = -(-g * sub_bytes(own) // 4)
    return [*parameters, ("U", (count, sub, PANEL), "int32")] if own.two_levels else parameters


def packed_shapes(spec: LinearSpec) -> tuple[Shape, ...]:
    """Return shape and dtype of the packed tensors."""
    return tuple(
        (tuple(int(d) for d in shape), dtype) for _, shape, dtype in packed_parameters(spec)
    )


def pack_blocks(spec: LinearSpec) -> PrimFunc:
    """Return the packing PrimFunc (*stored, *packed)."""
    n, k, own = spec.out_features, spec.in_features, FORMATS[spec.scheme]
    stored: list[Parameter] = [
        (name, (n, -(-k // each)), dtype) for name, (each, dtype) in own.columns.items()
    ]

    def emit(b: dict[str, Any], _sizes: dict[str, Any]) -> None:
        def source(p: Any, c: Any) -> StoredRow:
            row = p * PANEL + c
            return StoredRow(b, (T.min(row, n - 1),), row < n)

        pack_panels(own, b, source)

    return prim_func([*stored, *packed_parameters(spec)], emit)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """The row of the stored tensors that a lane of a panel has; padding repeats the last one."""

    b: dict[str, Any]  # the kernel's buffers
    row: tuple[Any, ...]  # the row, of experts (expert, row)
    inside: Any  # whether the lane is no padding

    def __call__(self, name: str, i: Any) -> Any:
        """Return element i of the row in a stored tensor."""
        return self.b[name][(*self.row, i)]


def pack_panels(
    own: BlockFormat, b: dict[str, Any], source: Callable[[Any, Any], StoredRow]
) -> None:
    """Emit the packing into W, S and U; `source(panel, lane)` returns what a lane has."""
    _each(b["W"], lambda p, i, c: _pack_words(own, b, source(p, c), (p, i, c)))
    _each(b["S"], lambda p, i, c: _pack_scales(own, b, source(p, c), (p, i, c)))
    if own.two_levels:
        _each(b["U"], lambda p, i, c: _pack_bytes(own, b, source(p, c), (p, i, c)))


def _each(packed: Any, emit: Callable[[Any, Any, Any], None]) -> None:
    """Emit `emit(panel, i, lane)` for all panels and all i of the second axis."""
    with (
        T.parallel(int(packed.shape[0])) as p,
        T.grid(int(packed.shape[1]), PANEL) as (i, c),
        T.sblock("pack"),
    ):
        T.reads()
        T.writes()
        emit(p, i, c)


def _pack_words(
    own: BlockFormat, b: dict[str, Any], stored: StoredRow, at: tuple[Any, Any, Any]
) -> None:
    p, g, c = at
    for j in range(own.low):
        if own.low == 2:
            word = _upper_word(stored("q_weight", g * 2 + j), 2)
            T.buffer_store(b["W"], word, [p, g, j, c])
            continue
        word = word_of("q8" if own.low == 8 else "q4", lambda i: stored("q_weight", i), g, j)
        T.buffer_store(b["W"], word, [p, g, j, c])
    for j in range(own.high):
        word = stored("q_high", g * own.high + j)
        T.buffer_store(b["W"], _upper_word(word, own.high), [p, g, own.low + j, c])


def _upper_word(stored: Any, bits: int) -> Any:
    """Emit a word of W whose bytes have fields of 1 or 2 bits, from the stored word with them."""
    word = T.uint32(0)
    for i in range(32 // bits):
        field = (stored >> T.uint32(i * bits)) & T.uint32(2**bits - 1)
        word = word | field << T.uint32(8 * (i % 4) + bits * (i // 4))
    return T.reinterpret("int32", word)


def _pack_scales(
    own: BlockFormat, b: dict[str, Any], stored: StoredRow, at: tuple[Any, Any, Any]
) -> None:
    p, i, c = at
    for level, name in enumerate(levels(own)):
        value = T.if_then_else(stored.inside, stored(name, i), T.Cast(own.floats, T.float32(0)))
        T.buffer_store(b["S"], value, [p, i, level, c])


def _pack_bytes(
    own: BlockFormat, b: dict[str, Any], stored: StoredRow, at: tuple[Any, Any, Any]
) -> None:
    p, i, c = at
    if sub_bytes(own) == 4:  # each of q_sub and q_submin has two bytes for a group
        shift = T.Cast("uint32", i % 2 * 16)
        half, least = (
            (stored(name, i // 2) >> shift) & T.uint32(0xFFFF) for name in ("q_sub", "q_submin")
        )
        both = T.reinterpret("int32", half | least << T.uint32(16))
        T.buffer_store(b["U"], both, [p, i, c])
        return
    if own.group < GROUP:  # four scales of two groups are one stored word
        T.buffer_store(b["U"], T.reinterpret("int32", stored("q_sub", i)), [p, i, c])
        return
    word = T.uint32(0)
    for half in range(2):
        for place, name in enumerate(("q_sub", "q_submin")[: 1 + own.minimum]):
            shift = T.Cast("uint32", (i % 2 * 2 + half) * 8)
            byte = (stored(name, i // 2) >> shift) & T.uint32(255)
            word = word | byte << T.uint32(16 * half + 8 * place)
    T.buffer_store(b["U"], T.reinterpret("int32", word), [p, i, c])
