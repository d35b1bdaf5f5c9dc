"""The number types of GGUF: their block layouts, and dequantization by the package `gguf`.

A row of a tensor is a sequence of blocks, each of which is encoded independently of all others.
Rows can therefore be selected, reordered and copied without dequantizing them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import gguf
import numpy as np
from numpy.typing import NDArray

from .few_bits import FEW_BITS, dequantize

_FLOATS = ("F32", "F16", "BF16")
# Quantized types whose values `gguf.quants` computes.
_BLOCKS = (
    *("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"),
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"),
    *("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"),
    *("TQ1_0", "TQ2_0", "MXFP4", "NVFP4"),
)
# Names of all supported types.
READ = (*_FLOATS, *_BLOCKS, *FEW_BITS)


@dataclass(frozen=True, slots=True)
class Layout:
    """The block layout of a number type; a block of a float type is one number."""

    name: str  # llama.cpp's name of the type, such as "Q4_K"
    values: int  # number of values in a block
    nbytes: int  # size of a block

    @property
    def is_float(self) -> bool:
        """Return whether the values are plain floats rather than quantized blocks."""
        return self.name in _FLOATS

    @property
    def bits(self) -> float:
        """Return the average number of bits per weight, scales included."""
        return 8 * self.nbytes / self.values

    def row_bytes(self, values: int) -> int:
        """Return the size of a row in bytes; `values` is a multiple of the block length."""
        return values // self.values * self.nbytes

    def floats(self, blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Dequantize blocks uint8 [rows, bytes] -> float32 [rows, values], as gguf-py does."""
        if self.name in FEW_BITS:
            with np.errstate(invalid="ignore", over="ignore"):
                return dequantize(self.name, blocks)
        kind = gguf.GGMLQuantizationType[self.name]
        if kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            dtype = "<f4" if self.name == "F32" else "<f2"
            plain: NDArray[np.float32] = blocks.view(dtype).astype(np.float32, copy=False)
            return plain
        # A damaged file may have infinite scales; the conversion reports non-finite values.
        with np.errstate(invalid="ignore", over="ignore"):
            weights: NDArray[np.float32] = gguf.quants.dequantize(blocks, kind)
        return weights


@cache
def layout_of(number: int) -> Layout | None:
    """Return the type with a code in GGUF; None: neither this module nor `gguf` has it."""
    for name, (code, values, nbytes) in FEW_BITS.items():
        if code == number:
            return Layout(name, values, nbytes)
    try:
        kind = gguf.GGMLQuantizationType(number)
    except ValueError:
        return None
    values, nbytes = gguf.GGML_QUANT_SIZES[kind]
    return Layout(kind.name, values, nbytes)
