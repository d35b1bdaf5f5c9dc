"""Int8 dot products of a group of 32 weights, one variant per instruction set.

All variants have the same exact results. Activations are -127 .. 127. Weights are nibbles, 0 to 15,
so that any 16 products of one sign stay within int16; or bytes: stored bytes (0 .. 254) where the
instruction is unsigned, else minus 127, so that any two products stay within int16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from tvm.script import tirx as T

from wherry.ops import Scheme
from wherry.ops.blocks import BlockFormat

from . import vector as v
from .int_layout import LAYOUTS
from .isa import Dot, Isa

Vector = Any  # int32 lanes; in a vector of weights, lane c holds four bytes of column c
# function: word index j -> four int8 of a row, broadcast to all lanes
Words = Callable[[int], Vector]


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Dot:
    """How a tile computes start[c] + sum over j < 8 of operands[j][c] . words(j)[c]."""

    lanes: int  # columns of one call
    heights: tuple[int, ...]  # row counts of tiles, as `over_rows` takes them
    compute: Callable[[Vector, list[Vector], Words], Vector]
    # function: packed words of a group -> operands of the dot product
    operands: Callable[[list[Vector]], list[Vector]]
    exact: bool = False  # whether activation scales are max / 127 instead of powers of two
    centred: bool = False  # whether operands are weights minus their zero point
    fma: bool = True  # whether scales are applied by fused multiply-add in hardware
    half: bool = True  # whether hardware converts float16 scales to float32
    # whether a word is read as an element of a vector, not by a broadcast load
    by_element: bool = False
    # LLVM's intrinsic that multiplies pairs of rows, see pair_tiles.py; None: there is none
    matrix: str | None = None
    # LLVM's intrinsic that looks bytes up in a table of 16 bytes: (table, indexes), the table
    # repeated for each 16 indexes
    lookup: str = "llvm.aarch64.neon.tbl1.v16i8"
    # how bytes are looked up in a table of 64: an instruction of AVX512-VBMI, one of NEON, or four
    # lookups in tables of 16
    lookup64: Literal["vbmi", "neon", "16"] = "16"


def int8_dot(isa: Isa, scheme: Scheme) -> Int8Dot | None:
    """Return the dot product of an instruction set for a weight scheme; None: float rows."""
    return None if isa.float_rows else (_NIBBLES if scheme == "q4" else _BYTES).get(isa.dot)


def block_dot(isa: Isa, own: BlockFormat) -> Int8Dot | None:
    """Return the dot product for a block format: integers of 2 to 6 or 8 bits, or a codebook.

    Its operands are unsigned; of 8 bits, where the instruction is signed, they are `centred`: bytes
    minus 128, or the values of a codebook. Integers of 6 bits come in halves of a group. None for
    "none".
    """
    kind = isa.dot
    if kind == "none":
        return None
    if own.trellis:
        return replace(_BYTES[kind], lookup64="vbmi") if isa.vbmi else _BYTES[kind]
    bits = own.low + own.high
    if own.codebook:
        bits = 5 if max(own.codebook) + own.offset < 2**5 else 8
    if bits == 8:
        return _BYTES[kind]
    dot = replace(_NIBBLES[kind], exact=not own.rounded_rows)
    # products of `fitting` operands that an int16 holds
    fitting = {5: 4, 6: 2}.get(bits, 8)
    if kind == "avx2":
        return replace(dot, compute=_pmaddubsw(8, *_AVX2, fitting))
    if kind == "ssse3":
        return replace(dot, compute=_pmaddubsw(4, *_SSSE3, fitting))
    if kind == "neon":
        return replace(dot, compute=_smull(min(8, 2 * fitting)))
    return dot


def looked_up(dot: Int8Dot, table: Sequence[int], bytes_: list[Vector]) -> list[Vector]:
    """Emit the bytes of a table, int8 or uint8, whose indexes are the bytes of vectors.

    A table has 16 or 64 bytes, and indexes are less.
    """
    lanes = dot.lanes
    kind = f"int8x{4 * lanes}"
    indexes = [T.reinterpret(kind, own) for own in bytes_]
    if len(table) == 64 and dot.lookup64 == "vbmi":
        full_table = _table(table, lanes)
        values = [T.call_llvm_pure_intrin(kind, _VPERMB, full_table, own) for own in indexes]
    else:
        parts = [_table(table[i : i + 16], lanes) for i in range(0, len(table), 16)]
        if len(parts) > 1 and dot.lookup64 == "16":
            values = [_by_parts(dot, parts, own) for own in indexes]
        else:
            name = _TBL4 if len(parts) > 1 else dot.lookup
            values = [T.call_llvm_pure_intrin(kind, name, *parts, own) for own in indexes]
    return [v.let(T.reinterpret(v.int_type(lanes), own)) for own in values]


def _by_parts(dot: Int8Dot, parts: list[Vector], index: Vector) -> Vector:
    """Emit bytes of a table of 64 by lookups in its parts, which ignore bits 4 and 5 of indexes."""
    kind = f"int8x{4 * dot.lanes}"
    values = [T.call_llvm_pure_intrin(kind, dot.lookup, part, index) for part in parts]
    for bit in (16, 32):
        of_bit = T.bitwise_and(index, T.broadcast(T.int8(bit), 4 * dot.lanes))
        even = v.let(of_bit) == T.broadcast(T.int8(0), 4 * dot.lanes)
        pairs = zip(values[0::2], values[1::2], strict=True)
        values = [v.let(T.Select(even, a, b)) for a, b in pairs]
    return values[0]


def _table(table: Sequence[int], lanes: int) -> Vector:
    """Emit a vector of a table's bytes, repeated."""
    packed = np.array(table, np.int16).astype(np.uint8).view("<i4")
    count = len(packed)
    places = T.bitwise_and(T.ramp(0, 1, lanes), T.broadcast(T.int32(count - 1), lanes))
    words = T.broadcast(T.int32(int(packed[0])), lanes)
    for i in range(1, count):
        own = T.broadcast(T.int32(int(packed[i])), lanes)
        words = T.Select(places == T.broadcast(T.int32(i), lanes), own, words)
    return v.let(T.reinterpret(f"int8x{4 * lanes}", v.let(words)))


def nibbles(words: list[Vector]) -> list[Vector]:
    """Emit nibbles as bytes: the low nibbles of all words, then the high ones."""
    lanes = v.lanes_of(words[0])

    def nibble(word: Vector, shift: int) -> Vector:
        shifted = T.shift_right(word, T.broadcast(T.int32(shift), lanes)) if shift else word
        return v.let(T.bitwise_and(shifted, T.broadcast(T.int32(0x0F0F0F0F), lanes)))

    return [nibble(word, shift) for shift in (0, 4) for word in words]


def _unchanged(words: list[Vector]) -> list[Vector]:
    return [v.let(word) for word in words]


def _centre(words: list[Vector]) -> list[Vector]:
    """Emit bytes minus their zero point, as int8."""
    count = 4 * v.lanes_of(words[0])
    zero = T.broadcast(T.int8(LAYOUTS["q8"].zero), count)
    return [v.let(T.reinterpret(f"int8x{count}", word) - zero) for word in words]


def _vpdpbusd(lanes: int) -> Callable[[Vector, list[Vector], Words], Vector]:
    """Return the dot product of AVX512-VNNI and AVX-VNNI: an int32 adds four products."""

    def compute(start: Vector, nibbles: list[Vector], words: Words) -> Vector:
        for j, nibble in enumerate(nibbles):
            start = T.call_llvm_pure_intrin(
                v.int_type(lanes),
                f"llvm.x86.avx512.vpdpbusd.{32 * lanes}",
                start,
                T.reinterpret(f"uint8x{4 * lanes}", nibble),  # LLVM's intrinsic takes byte vectors
                T.reinterpret(f"int8x{4 * lanes}", words(j)),
            )
        return start

    return compute


def _pmaddubsw(
    lanes: int, narrow: str, wide: str, fitting: int = 8
) -> Callable[[Vector, list[Vector], Words], Any]:
    """Return the dot product of SSSE3 and AVX2, which adds pairs of products as int16.

    The sums of `fitting` words fit into int16; of nibbles, those of all eight of a group: 8 * 2 *
    15 * 127 = 30480. A multiplication by ones then adds the pairs as int32.
    """
    shorts, bytes_ = f"int16x{2 * lanes}", 4 * lanes

    def compute(start: Vector, nibbles: list[Vector], words: Words) -> Vector:
        pairs = [
            T.call_llvm_pure_intrin(
                shorts,
                narrow,
                T.reinterpret(f"uint8x{bytes_}", nibble),
                T.reinterpret(f"int8x{bytes_}", words(j)),
            )
            for j, nibble in enumerate(nibbles)
        ]
        ones = T.broadcast(T.int16(1), 2 * lanes)
        for first in range(0, len(pairs), fitting):
            sums = pairs[first : first + fitting]
            while len(sums) > 1:  # a reduction tree, for short dependency chains
                sums = [a + b for a, b in zip(sums[0::2], sums[1::2], strict=True)]
            start = start + T.call_llvm_pure_intrin(v.int_type(lanes), wide, sums[0], ones)
        return start

    return compute


def _signed_pmaddubsw(
    lanes: int, narrow: str, wide: str, sign: str
) -> Callable[[Vector, list[Vector], Words], Vector]:
    """Return the dot product of SSSE3 and AVX2 for signed weights w: |w| times sign(w) * x."""
    bytes_ = f"int8x{4 * lanes}"

    def with_sign_of(weight: Vector, value: Vector) -> Vector:
        return T.call_llvm_pure_intrin(bytes_, sign, T.reinterpret(bytes_, value), weight)

    def compute(start: Vector, weights: list[Vector], words: Words) -> Vector:
        ones = T.broadcast(T.int16(1), 2 * lanes)
        for j, weight in enumerate(weights):
            size = T.reinterpret(f"uint8x{4 * lanes}", with_sign_of(weight, weight))
            pairs = T.call_llvm_pure_intrin(
                f"int16x{2 * lanes}", narrow, size, with_sign_of(weight, words(j))
            )
            start = start + T.call_llvm_pure_intrin(v.int_type(lanes), wide, pairs, ones)
        return start

    return compute


def _sdot(start: Vector, nibbles: list[Vector], words: Words) -> Vector:
    """Emit the dot product of Arm's dotprod extension: like vpdpbusd, but signed by signed."""
    for j, nibble in enumerate(nibbles):
        start = T.call_llvm_pure_intrin(
            "int32x4",
            "llvm.aarch64.neon.sdot.v4i32.v16i8",
            start,
            T.reinterpret("int8x16", nibble),
            T.reinterpret("int8x16", words(j)),
        )
    return start


def _smull(fitting: int) -> Callable[[Vector, list[Vector], Words], Vector]:
    """Return the dot product of Arm without dotprod: an int16 sum adds `fitting` products.

    An int16 sum holds eight products with nibbles or 5 bits, 8 * 31 * 127 = 31496, four with 6
    bits, 4 * 63 * 127 = 32004, or two with bytes, 2 * 128 * 127 = 32512. Neighbours are then added
    in pairs, and again at the end of the group.
    """

    def half(vector: Vector, which: int) -> Vector:  # half of a vector: the bytes of two columns
        return v.shuffle([T.reinterpret("int8x16", vector)], list(range(8 * which, 8 * which + 8)))

    def pairs(weights: list[Vector], words: Words, which: int) -> Vector:
        total = None
        for first in range(0, len(weights), fitting):
            sums = None
            for j in range(first, first + fitting):
                product = T.call_llvm_pure_intrin(
                    "int16x8",
                    "llvm.aarch64.neon.smull.v8i16",
                    half(weights[j], which),
                    half(words(j), which),
                )
                sums = product if sums is None else sums + product
            wide = T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", sums)
            total = wide if total is None else total + wide
        return total

    def compute(start: Vector, weights: list[Vector], words: Words) -> Vector:
        low, high = (pairs(weights, words, which) for which in (0, 1))
        return start + T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp.v4i32", low, high)

    return compute


_VPERMB = "llvm.x86.avx512.permvar.qi.512"  # (table of 64 bytes, indexes)
_TBL4 = "llvm.aarch64.neon.tbl4.v16i8"  # (four parts of a table, indexes)
_AVX2 = ("llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd")
_SSSE3 = ("llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd")
_NIBBLES: dict[Dot, Int8Dot] = {
    "vnni512": Int8Dot(
        lanes=16,
        # With 16 rows LLVM spills 21 vectors a group: on a Zen 5 48% of the peak in place of 70%,
        # within 5% of each other on an Emerald Rapids, 67.5 and 66 cycles by LLVM's model of Zen 4.
        heights=(8, 4, 2, 1),
        compute=_vpdpbusd(16),
        operands=nibbles,
        lookup="llvm.x86.avx512.pshuf.b.512",
    ),
    "avxvnni": Int8Dot(
        lanes=8,
        heights=(8, 4, 1),
        compute=_vpdpbusd(8),
        operands=nibbles,
        lookup="llvm.x86.avx2.pshuf.b",
    ),
    "avx2": Int8Dot(
        lanes=8,
        heights=(4, 1),
        compute=_pmaddubsw(8, *_AVX2),
        operands=nibbles,
        lookup="llvm.x86.avx2.pshuf.b",
    ),
    "ssse3": Int8Dot(
        lanes=4,
        lookup="llvm.x86.ssse3.pshuf.b.128",
        heights=(4, 1),
        compute=_pmaddubsw(4, *_SSSE3),
        operands=nibbles,
        fma=False,
        half=False,
    ),
    "i8mm": Int8Dot(
        lanes=4,
        heights=(8, 4, 1),
        compute=_sdot,
        operands=nibbles,
        by_element=True,
        matrix="smmla",
        lookup64="neon",
    ),
    "dotprod": Int8Dot(
        lanes=4,
        heights=(8, 4, 1),
        compute=_sdot,
        operands=nibbles,
        by_element=True,
        lookup64="neon",
    ),
    "neon": Int8Dot(lanes=4, heights=(4, 1), compute=_smull(8), operands=nibbles, lookup64="neon"),
}


def _bytes(
    kind: Dot, compute: Callable[[Vector, list[Vector], Words], Vector] | None = None
) -> Int8Dot:
    """Return the variant for 8-bit weights: the one for nibbles, or `compute` on signed weights."""
    if compute is None:
        return replace(_NIBBLES[kind], operands=_unchanged, exact=True)
    return replace(_NIBBLES[kind], compute=compute, operands=_centre, centred=True, exact=True)


_BYTES: dict[Dot, Int8Dot] = {
    "vnni512": _bytes("vnni512"),
    "avxvnni": _bytes("avxvnni"),
    "avx2": _bytes("avx2", _signed_pmaddubsw(8, *_AVX2, "llvm.x86.avx2.psign.b")),
    "ssse3": _bytes("ssse3", _signed_pmaddubsw(4, *_SSSE3, "llvm.x86.ssse3.psign.b.128")),
    # pairs need no centred bytes: the mixed instruction takes unsigned weights
    "i8mm": replace(_bytes("i8mm", _sdot), matrix="usmmla"),
    "dotprod": _bytes("dotprod", _sdot),
    "neon": _bytes("neon", _smull(2)),
}
