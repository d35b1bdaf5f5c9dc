"""Int8 dot products of a group of 32: what each instruction set has for the 4-bit linear.

All of them give the same integers, exactly: weights are nibbles, 0 .. 15, activations -127 .. 127,
so that even 32 products stay within int32 and any 16 of one sign within int16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from . import vector as v
from .isa import Dot

Vector = Any  # int32 lanes; of the weights, lane c holds four bytes of column c
Words = Callable[[int], Vector]  # word j (four int8 of a row), in all lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Dot:
    """How a tile computes start[c] + sum over j < 8 of nibbles[j][c] . words(j)[c]."""

    lanes: int  # columns of one call
    heights: tuple[int, ...]  # rows of a tile, as `over_rows` takes them
    compute: Callable[[Vector, list[Vector], Words], Vector]
    fma: bool = True  # fused multiply-add in hardware, for the scales
    half: bool = True  # float16 to float32 in hardware, likewise
    by_element: bool = False  # reads a word as an element of a vector, not as a broadcast load


def int8_dot(kind: Dot) -> Int8Dot | None:
    """The dot product of an instruction set; None for "none"."""
    return _KINDS.get(kind)


def _vpdpbusd(lanes: int) -> Callable[[Vector, list[Vector], Words], Vector]:
    """AVX512-VNNI and AVX-VNNI: four products are added to each int32."""

    def compute(start: Vector, nibbles: list[Vector], words: Words) -> Vector:
        for j, nibble in enumerate(nibbles):
            start = T.call_llvm_pure_intrin(
                v.int_type(lanes),
                f"llvm.x86.avx512.vpdpbusd.{32 * lanes}",
                start,
                T.reinterpret(f"uint8x{4 * lanes}", nibble),  # LLVM wants bytes here, not words
                T.reinterpret(f"int8x{4 * lanes}", words(j)),
            )
        return start

    return compute


def _pmaddubsw(lanes: int, narrow: str, wide: str) -> Callable[[Vector, list[Vector], Words], Any]:
    """SSSE3 and AVX2: pairs of products are int16, and are added as such.

    All eight words of a group fit: 8 * 2 * 15 * 127 = 30480. One multiplication by ones then adds
    the pairs as int32.
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
        while len(pairs) > 1:  # a tree, for short dependency chains
            pairs = [a + b for a, b in zip(pairs[0::2], pairs[1::2], strict=True)]
        ones = T.broadcast(T.int16(1), 2 * lanes)
        return start + T.call_llvm_pure_intrin(v.int_type(lanes), wide, pairs[0], ones)

    return compute


def _sdot(start: Vector, nibbles: list[Vector], words: Words) -> Vector:
    """Arm's dotprod extension: as vpdpbusd, signed by signed."""
    for j, nibble in enumerate(nibbles):
        start = T.call_llvm_pure_intrin(
            "int32x4",
            "llvm.aarch64.neon.sdot.v4i32.v16i8",
            start,
            T.reinterpret("int8x16", nibble),
            T.reinterpret("int8x16", words(j)),
        )
    return start


def _smull(start: Vector, nibbles: list[Vector], words: Words) -> Vector:
    """Arm without dotprod: products are int16, eight of a byte's place fit, 8 * 15 * 127 = 15240.

    Neighbours are added in pairs, twice, at the end of the group.
    """

    def half(vector: Vector, which: int) -> Vector:  # two columns
        return v.shuffle([T.reinterpret("int8x16", vector)], list(range(8 * which, 8 * which + 8)))

    def pairs(which: int) -> Vector:
        sums = None
        for j, nibble in enumerate(nibbles):
            product = T.call_llvm_pure_intrin(
                "int16x8",
                "llvm.aarch64.neon.smull.v8i16",
                half(nibble, which),
                half(words(j), which),
            )
            sums = product if sums is None else sums + product
        return T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", sums)

    columns = T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp.v4i32", pairs(0), pairs(1))
    return start + columns


_KINDS: dict[Dot, Int8Dot] = {
    "vnni512": Int8Dot(lanes=16, heights=(16, 8, 4, 2, 1), compute=_vpdpbusd(16)),
    "avxvnni": Int8Dot(lanes=8, heights=(8, 4, 1), compute=_vpdpbusd(8)),
    "avx2": Int8Dot(
        lanes=8,
        heights=(4, 1),
        compute=_pmaddubsw(8, "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
    ),
    "ssse3": Int8Dot(
        lanes=4,
        heights=(4, 1),
        compute=_pmaddubsw(4, "llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"),
        fma=False,
        half=False,
    ),
    "dotprod": Int8Dot(lanes=4, heights=(8, 4, 1), compute=_sdot, by_element=True),
    "neon": Int8Dot(lanes=4, heights=(4, 1), compute=_smull),
}
