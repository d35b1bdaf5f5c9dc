"""Block formats: how llama.cpp's quantized types encode weights, as Wherry stores them.

A weight is an integer q of `low + high` bits. Scales and minimums belong to groups along K:

    w = scale * (q - zero) + minimum

In types with one level, a block has a float16 scale and, with `minimum`, a float16 minimum; a group
is a block. In types with two levels, a block has a float16 scale d and, with `minimum`, a float16
dmin, and each group has a byte s and, with `minimum`, a byte m: scale = d * (s - bias), minimum =
-dmin * m. Stored tensors, of which those that a type lacks are left out:

    q_weight  uint32   [N, K * low / 32]    lowest first
    q_high    uint32   [N, K * high / 32]   the upper bits of the integers
    q_scale   float16  [N, K / block]       d
    q_min     float16  [N, K / block]       the minimum, or dmin
    q_sub     uint32   [N, K / group / 4]   s, four bytes a word, lowest first
    q_submin  uint32   [N, K / group / 4]   m
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFormat:
    """The structure of a block type."""

    block: int  # weights of a block
    low: int  # bits of an integer in q_weight: 2, 4 or 8
    high: int = 0  # bits of an integer in q_high: 0, 1 or 2
    zero: int = 0  # integer that stands for 0
    group: int = 32  # weights that share a scale
    minimum: bool = False
    bias: int | None = None  # of the bytes s; None: there is one level of scales
    # Values of the integers; (): the integers themselves.
    codebook: tuple[int, ...] = ()

    @property
    def two_levels(self) -> bool:
        """Return whether each group has a byte besides the float16 of its block."""
        return self.bias is not None

    @property
    def columns(self) -> dict[str, tuple[int, str]]:
        """Return the stored tensors: name -> (weights of an element, dtype)."""
        sub = {"q_sub": (4 * self.group, "uint32")} if self.two_levels else {}
        mins = {"q_min": (self.block, "float16")} if self.minimum else {}
        both = {"q_submin": (4 * self.group, "uint32")} if self.minimum and sub else {}
        high = {"q_high": (32 // self.high, "uint32")} if self.high else {}
        return {
            "q_weight": (32 // self.low, "uint32"),
            **high,
            "q_scale": (self.block, "float16"),
            **mins,
            **sub,
            **both,
        }


_IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# Name of a spec's scheme -> its structure. The names are llama.cpp's in lower case.
FORMATS: dict[str, BlockFormat] = {
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
    "iq4_nl": BlockFormat(block=32, low=4, codebook=_IQ4),
    "iq4_xs": BlockFormat(block=256, low=4, bias=32, codebook=_IQ4),
}
