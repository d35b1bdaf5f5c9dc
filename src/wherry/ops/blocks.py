"""Block formats: llama.cpp's types, those of AWQ, GPTQ, MLX, MXFP4, NVFP4, BitNet, and our own.

A weight is an integer q of `low + high` bits. Scales and minimums belong to groups along K:

    w = scale * (q - zero) + minimum

In types with one level, a block has a float scale and, with `minimum`, a float minimum or, with
`zeros`, a zero point of its own; a group is a block. In types with two levels, a block has a
float16 scale d and, with `minimum`, a float16 dmin, and each group has a byte s and, with
`minimum`, a byte m: scale = d * (s - bias), minimum = -dmin * m. In MXFP4 and NVFP4 the byte is a
float (`bytes`), scale = d * float(s), and a row is one block.

Types with a `trellis` are trellis-coded (Marcellin and Fischer, 1990, IEEE Transactions on
Communications 38(1)): the value of an integer depends on those before it in its group. A window has
the WINDOW_BITS bits of an integer and of those before it, the integer lowest; before a group are
zeros. With j = (40 q + 57 p + 3) mod 64, where q are the lowest three bits of the window and p the
others, and u = (2 j - 63) / 63, the value is 127 (0.5 u + 0.22 u^3 + 0.28 u^17), rounded. The 64
values are spaced about as the quantiles of normal numbers, and windows that differ in one integer
have values far apart, so that the paths through the trellis are many and different.

Stored tensors, of which those that a type lacks are left out:

    q_weight  uint32   [N, K * low / 32]    lowest first
    q_high    uint32   [N, K * high / 32]   the upper bits of the integers
    q_scale   floats   [N, K / block]       d
    q_min     floats   [N, K / block]       the minimum, or dmin
    q_zero    floats   [N, K / block]       the zero point, an integer of 0 to 255
    q_sub     uint32   [N, K / group / 4]   s, four bytes a word, lowest first
    q_submin  uint32   [N, K / group / 4]   m

The last block of a row may be cut, which llama.cpp's own files never have: in types with two levels
to a multiple of 64 weights, in the others to one of 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

ROW = 1 << 20  # a block that no row exceeds


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFormat:
    """The structure of a block type."""

    block: int  # weights of a block
    low: int  # bits of an integer in q_weight: 2, 4 or 8
    high: int = 0  # bits of an integer in q_high: 0, 1 or 2
    zero: int = 0  # integer that stands for 0
    group: int = 32  # weights that share a scale
    minimum: bool = False
    zeros: bool = False  # whether each block has a zero point, an integer stored as a float
    floats: str = "float16"  # dtype of scales, minimums and zero points
    bias: int | None = None  # of the bytes s if they are integers
    # Floats that the bytes s are; None: integers, or there is one level of scales. "e8m0": 2^(s -
    # 127); "e4m3": 4 bits of exponent (bias 7) and 3 of mantissa, without a sign.
    bytes: Literal["e8m0", "e4m3"] | None = None
    # Values of the integers; (): the integers themselves.
    codebook: tuple[int, ...] = ()
    trellis: bool = False  # whether windows of integers have values
    # Whether the 8 bits of an integer are a float: a sign, and the bits of "e4m3".
    e4m3: bool = False
    # Whether models with such weights have rounded the rows that a linear reads to integers of 8
    # bits times a power of two: int8 groups whose scales are powers of two represent them.
    rounded_rows: bool = False

    @property
    def two_levels(self) -> bool:
        """Return whether each group has a byte besides the float of its block."""
        return self.bias is not None or self.bytes is not None

    @property
    def offset(self) -> int:
        """Return the number to add to the values of integers that makes them all unsigned."""
        if self.trellis:
            return -min(TRELLIS)
        return -min(self.codebook) if self.codebook else self.zero

    @property
    def bits(self) -> int:
        """Return the number of bits of an integer."""
        return self.low + self.high

    @property
    def memory(self) -> int:
        """Return the number of integers before one that its value depends on."""
        return WINDOW_BITS // self.bits - 1 if self.trellis else 0

    @property
    def multiple(self) -> int:
        """Return what the number of a row's weights is a multiple of."""
        if self.e4m3:
            return 4
        if self.bytes is not None:
            return self.group
        return 64 if self.two_levels else 32

    @property
    def bits_per_weight(self) -> float:
        """Return the stored bits of a weight in a row of whole blocks."""
        sizes = {"uint32": 32, "float16": 16, "float32": 32}
        return sum(sizes[dtype] / each for each, dtype in self.columns.values())

    @property
    def columns(self) -> dict[str, tuple[int, str]]:
        """Return the stored tensors: name -> (weights of an element, dtype)."""
        sub = {"q_sub": (4 * self.group, "uint32")} if self.two_levels else {}
        mins = {"q_min": (self.block, self.floats)} if self.minimum else {}
        zeros = {"q_zero": (self.block, self.floats)} if self.zeros else {}
        both = {"q_submin": (4 * self.group, "uint32")} if self.minimum and sub else {}
        high = {"q_high": (32 // self.high, "uint32")} if self.high else {}
        return {
            "q_weight": (32 // self.low, "uint32"),
            **high,
            "q_scale": (self.block, self.floats),
            **mins,
            **zeros,
            **sub,
            **both,
        }


# Twice the numbers of E2M1, of 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the same with a sign.
_E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# What IQ1, IQ2 and IQ3 multiply by d (2 s + 1) / 8, / 4 or 1: their grids have no other numbers.
# Codebooks have a power of two of values, the last ones unused.
_IQ1, _IQ2 = (-9, -7, -1, 1, 7, 9, 0, 0), (-43, -25, -8, 8, 25, 43, 0, 0)
_IQ3 = {
    "xxs": (*(-62, -52, -44, -36, -28, -20, -12, -4), *(4, 12, 20, 28, 36, 44, 52, 62)),
    "s": tuple(range(-15, 16, 2)),
}


def _grid(group: int, codebook: tuple[int, ...], floats: str = "float32") -> BlockFormat:
    high = {8: 1, 16: 0}[len(codebook)]
    return BlockFormat(
        block=256,
        group=group,
        low=2 if high else 4,
        high=high,
        bias=0,
        floats=floats,
        codebook=codebook,
    )


# llama.cpp's name in lower case -> its structure.
LLAMA_CPP: dict[str, BlockFormat] = {
    "q4_0": BlockFormat(block=32, low=4, zero=8),
    "q4_1": BlockFormat(block=32, low=4, minimum=True),
    "q5_0": BlockFormat(block=32, low=4, high=1, zero=16),
    "q5_1": BlockFormat(block=32, low=4, high=1, minimum=True),
    "q8_0": BlockFormat(block=32, low=8, zero=128),
    "q2_k": BlockFormat(block=256, low=2, group=16, minimum=True, bias=0),
    "q3_k": BlockFormat(block=256, low=2, high=1, zero=4, group=16, bias=32),
    "q4_k": BlockFormat(block=256, low=4, minimum=True, bias=0),
    "q5_k": BlockFormat(block=256, low=4, high=1, minimum=True, bias=0),
    "q6_k": BlockFormat(block=256, low=4, high=2, zero=32, group=16, bias=128),
    "tq1_0": BlockFormat(block=256, group=256, low=2, zero=1),
    "tq2_0": BlockFormat(block=256, group=256, low=2, zero=1),
    "q1_0": BlockFormat(block=128, group=128, low=2, zero=1),  # -1 and 1
    "q2_0": BlockFormat(block=64, group=64, low=2, zero=1),
    "iq1_s": _grid(32, _IQ1),
    "iq1_m": _grid(16, _IQ1),
    "iq2_xxs": _grid(32, _IQ2),
    "iq2_xs": _grid(16, _IQ2),
    "iq2_s": _grid(16, _IQ2),
    "iq3_xxs": _grid(32, _IQ3["xxs"]),
    "iq3_s": _grid(32, _IQ3["s"], "float16"),
    "iq4_nl": BlockFormat(block=32, low=4, codebook=IQ4),
    "iq4_xs": BlockFormat(block=256, low=4, bias=32, codebook=IQ4),
    "mxfp4": BlockFormat(block=ROW, low=4, codebook=_E2M1, floats="float32", bytes="e8m0"),
    "nvfp4": BlockFormat(
        block=ROW, low=4, group=16, codebook=_E2M1, floats="float32", bytes="e4m3"
    ),
}


# Bits of a window of integers.
WINDOW_BITS = 6
# The value of a window is TRELLIS_FACTORS' polynomial of u at the level that the window has.
TRELLIS_STEPS = (40, 57, 3)  # of a level: for q, for p, and the first
TRELLIS_FACTORS = (0.5, 0.22, 0.28)  # of u, u^3 and u^17


def _trellis_value(window: int) -> int:
    """Return the value of a window."""
    for_q, for_p, first = TRELLIS_STEPS
    level = (for_q * (window % 8) + for_p * (window // 8) + first) % 64
    u = (2 * level - 63) / 63
    one, three, seventeen = TRELLIS_FACTORS
    return round(127 * (one * u + three * u**3 + seventeen * u**17))


TRELLIS: tuple[int, ...] = tuple(map(_trellis_value, range(2**WINDOW_BITS)))  # value of each window
# Trellis-coded types of our own.
TCQ: dict[str, BlockFormat] = {
    "tcq2": BlockFormat(block=256, low=2, bias=128, trellis=True),
    "tcq3": BlockFormat(block=256, low=2, high=1, bias=128, trellis=True),
}
# FP8: a scale for each row, or for blocks of 128 columns; MXFP8.
FP8: dict[str, BlockFormat] = {
    "fp8_row": BlockFormat(block=ROW, group=ROW, low=8, floats="float32", e4m3=True),
    "fp8_g128": BlockFormat(block=128, group=128, low=8, floats="float32", e4m3=True),
    "mxfp8": BlockFormat(block=ROW, low=8, floats="float32", bytes="e8m0", e4m3=True),
}
# BitNet's -1, 0 and 1 with a scale for each row.
TERNARY: dict[str, BlockFormat] = {
    "ternary": BlockFormat(
        block=ROW, group=ROW, low=2, zero=1, floats="float32", rounded_rows=True
    ),
}
_SHORT = {"float16": "f16", "float32": "f32"}


def affine_name(bits: int, floats: str, group: int, minimum: bool) -> str:
    """Return the name of a format with a zero point or minimum a group: "affine4f16_g64_min"."""
    return f"affine{bits}{_SHORT[floats]}_g{group}{'_min' if minimum else ''}"


# Those of AWQ, GPTQ and compressed-tensors (zero points), and of MLX (minimums).
AFFINE: dict[str, BlockFormat] = {
    affine_name(bits, floats, group, minimum): BlockFormat(
        block=group,
        group=group,
        low=bits,
        minimum=minimum,
        zeros=not minimum,
        floats=floats,
    )
    for bits, group, floats, minimum in product(
        (4, 8), (32, 64, 128), ("float16", "float32"), (False, True)
    )
}
# Name of a spec's scheme -> its structure.
FORMATS = LLAMA_CPP | TCQ | FP8 | TERNARY | AFFINE
