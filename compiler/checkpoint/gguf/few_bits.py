"""Dequantization of the types of 1 and 2 bits that the package `gguf` cannot read.

    Q1_0  blocks of 128: float16 d, then a bit each, the lowest first: d if it is set, else -d
    Q2_0  blocks of 64: float16 d, then two bits each, the lowest first: (q - 1) d

The source of the layouts is ggml-common.h of llama.cpp, that of the values its ggml-quants.c.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Name -> code in GGUF, values of a block, bytes of a block.
FEW_BITS = {"Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18)}


def dequantize(name: str, rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the values float32 [rows, values] of blocks uint8 [rows, bytes]."""
    _, values, nbytes = FEW_BITS[name]
    blocks = np.ascontiguousarray(rows).reshape(len(rows), -1, nbytes)
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    bits = 8 * (nbytes - 2) // values
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    q = blocks[..., 2:, None] >> shifts & np.uint8(2**bits - 1)
    q = q.reshape(*scale.shape[:-1], values).astype(np.float32)
    signed = 2 * q - 1 if bits == 1 else q - 1
    weights: NDArray[np.float32] = (signed * scale).reshape(len(rows), -1)
    return weights
