"""What `--quant` may name besides a scheme: a block type, or an average number of bits.

    q4_k        all matrices whose rows the type can store, as encoded by `block_encoder`
    auto:4.5    a type for each matrix, of 4.5 bits a weight on average (`allocation`)

What no block type stores is in the scheme `base`: norms, experts, and rows that are no multiple of
a type's. So a model has one dtype of floats, and kernels for it on every target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wherry.errors import UsageError

from .blocks import BlockQuant
from .plan import SchemeRows, parts
from .scheme import TYPES, Encoder, find
from .stored import Shape

AUTO = "auto"
LEAST, MOST = 2.5, 8.5  # average bits that there are types for
_FEW_BITS = 4.8  # types with at most this number of bits have a base of 4 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A choice of block types for the matrices of a model."""

    name: str  # as users type it
    bits: float | None = None  # average bits of a weight; None: `type` for all
    type: BlockQuant | None = None

    @property
    def bits_per_weight(self) -> float:
        """Return the bits of a weight, on average."""
        if self.bits is not None:
            return self.bits
        assert self.type is not None, "a mix has a number of bits or a type"
        return self.type.format.bits_per_weight

    @property
    def base(self) -> Encoder:
        """Return the scheme of what has no block type."""
        if self.type is None or self.type.format.bits_per_weight <= _FEW_BITS:
            return find("q4f16_1")
        return find("q8f16_1")

    def uniform(self, shapes: Mapping[str, Shape]) -> dict[str, tuple[SchemeRows, ...]]:
        """Return the plan of a mix of one type for matrices with these shapes."""
        assert self.type is not None, "a mix of several types is allocated"
        return {
            name: parts(name, [(shape[0], self.type)])
            for name, shape in shapes.items()
            if len(shape) == 2 and self.type.quantizes(name, shape)  # not experts
        }


def mix_of(name: str | None) -> Mix | None:
    """Return the mix with a name; None: the name is that of a scheme, or None.

    Raises:
        UsageError: the number of bits of "auto:BITS" is not one that there are types for.
    """
    if name is None:
        return None
    text = name.strip().lower()
    if text in TYPES:
        return Mix(name=text, type=TYPES[text])
    kind, colon, bits = text.partition(":")
    if kind != AUTO:
        return None
    if not re.fullmatch(r"\d(\.\d{1,3})?", bits) or not LEAST <= float(bits) <= MOST:
        raise UsageError(
            f"--quant {name!r} asks for {bits if colon else 'no number of'} bits per weight "
            f"on average; there are {LEAST} to {MOST}. Type: --quant auto:4.5"
        )
    return Mix(name=f"{AUTO}:{float(bits):g}", bits=float(bits))


def base_of(name: str) -> Encoder:
    """Return the scheme of a mix's other weights, or the scheme with a name.

    Raises:
        UsageError: there is neither, or as `mix_of`.
    """
    mix = mix_of(name)
    return mix.base if mix else find(name)
