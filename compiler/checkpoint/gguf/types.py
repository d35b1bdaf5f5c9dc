"""The types of numbers that GGUF has, as blocks, and their values.

A row is a sequence of blocks, which stand for themselves: rows can be taken, put in another order
and kept without a look at their values. `gguf.quants` has the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import gguf
import numpy as np
from numpy.typing import NDArray

_FLOATS = ("F32", "F16", "BF16")
# Quantized types whose values `gguf.quants` computes.
_BLOCKS = (
    *("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"),
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"),
    *("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"),
    *("TQ1_0", "TQ2_0", "MXFP4"),
)
READ = _FLOATS + _BLOCKS


@dataclass(frozen=True, slots=True)
class Layout:
    """A type of numbers: how many values a block has, and how many bytes."""

    name: str  # llama.cpp's
    values: int
    nbytes: int

    @property
    def is_float(self) -> bool:
        """Whether the values are stored as floats, one by one."""
        return self.name in _FLOATS

    @property
    def bits(self) -> float:
        """Bits of a weight."""
        return 8 * self.nbytes / self.values

    def row_bytes(self, values: int) -> int:
        """Bytes of a row; its values are whole blocks."""
        return values // self.values * self.nbytes

    def floats(self, blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
        """blocks uint8 [rows, bytes] -> float32 [rows, values], as gguf-py computes them."""
        kind = gguf.GGMLQuantizationType[self.name]
        if kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            dtype = "<f4" if self.name == "F32" else "<f2"
            plain: NDArray[np.float32] = blocks.view(dtype).astype(np.float32, copy=False)
            return plain
        # Scales of a damaged file may be infinite; conversion finds the values that are not finite.
        with np.errstate(invalid="ignore", over="ignore"):
            made: NDArray[np.float32] = gguf.quants.dequantize(blocks, kind)
        return made


@cache
def layout_of(number: int) -> Layout | None:
    """The type that a file gives by number; None: there is none, or the package is older."""
    try:
        kind = gguf.GGMLQuantizationType(number)
    except ValueError:
        return None
    values, nbytes = gguf.GGML_QUANT_SIZES[kind]
    return Layout(kind.name, values, nbytes)
