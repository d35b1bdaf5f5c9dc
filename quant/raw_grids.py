"""Takes raw blocks of llama.cpp's IQ1, IQ2 and IQ3 types apart; see `raw_blocks`.

Their blocks have indexes of grids: 4 or 8 values at once, and signs. All values of a type are those
of a codebook of 6 or 16 numbers (`wherry.ops.blocks`), so integers of 3 or 4 bits represent the
weights exactly. The package `gguf` has the grids and computes the weights; this module finds the
scales, and which value of the codebook a weight is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import LLAMA_CPP

Raw = NDArray[np.uint8]
Fields = dict[str, NDArray[Any]]


def _nibbles(field: Raw) -> Raw:
    """Return the low and the high nibble of each byte."""
    nibbles: Raw = (field[..., None] >> np.array([0, 4], np.uint8)) & np.uint8(15)
    return nibbles.reshape(*field.shape[:-1], -1)


def _upper_nibbles(field: Raw) -> Raw:
    """Return the upper nibble of each uint32."""
    nibbles: Raw = (np.ascontiguousarray(field).view("<u4") >> 28).astype(np.uint8)
    return nibbles


def _iq1_s(qh: Raw) -> Raw:
    """Return the three bits of each uint16 that are a scale."""
    scales: Raw = ((np.ascontiguousarray(qh).view("<u2") >> 12) & 7).astype(np.uint8)
    return scales


def _iq1_m(scales: Raw) -> Raw:
    """Return the four scales, of three bits each, of each uint16."""
    words = np.ascontiguousarray(scales).view("<u2")[..., None]
    bits: Raw = (words >> np.array([0, 3, 6, 9], np.uint16) & 7).astype(np.uint8)
    return bits.reshape(*scales.shape[:-1], -1)


# Type -> the bytes of a block with its scales, the function that returns them, and what a unit of
# the codebook is in d (2 s + 1).
_SCALES: dict[str, tuple[slice, Callable[[Raw], Raw], float]] = {
    "IQ1_S": (slice(34, 50), _iq1_s, 1 / 8),
    "IQ1_M": (slice(48, 56), _iq1_m, 1 / 8),
    "IQ2_XXS": (slice(2, 66), lambda f: _upper_nibbles(f)[..., 1::2], 1 / 8),
    "IQ2_XS": (slice(66, 74), _nibbles, 1 / 8),
    "IQ2_S": (slice(74, 82), _nibbles, 1 / 8),
    "IQ3_XXS": (slice(66, 98), _upper_nibbles, 1 / 4),
    "IQ3_S": (slice(106, 110), _nibbles, 1),
}
GRIDS = tuple(_SCALES)


def unpack_grid(name: str, rows: Raw) -> Fields:
    """Return q, q_scale and q_sub of raw rows of a type, uint8 [rows, bytes of a row].

    They are as `raw_blocks` returns them; a weight whose scale is 0 or not finite has any integer.
    """
    import gguf  # only conversions need it

    kind, own = gguf.GGMLQuantizationType[name], LLAMA_CPP[name.lower()]
    where, function, unit = _SCALES[name]
    blocks = rows.reshape(len(rows), -1, gguf.GGML_QUANT_SIZES[kind][1])
    if name == "IQ1_M":  # the upper nibbles of the four words are the float's
        nibbles = np.ascontiguousarray(blocks[..., where]).view("<u2") >> 12
        halves = (nibbles << np.array([0, 4, 8, 12], np.uint16)).sum(-1, dtype=np.uint16)
    else:
        halves = np.ascontiguousarray(blocks[..., :2]).view("<u2")[..., 0]
    subs = 2 * function(blocks[..., where]) + 1
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # the conversion reports scales that are not finite
        d = halves.view(np.float16).astype(np.float32) * np.float32(unit)
        w = gguf.quants.dequantize(rows, kind).reshape(len(rows), -1, own.group)
        scale = d[..., None] * subs
        units = np.nan_to_num(w / scale.reshape(len(rows), -1, 1), nan=0.0, posinf=0, neginf=0)
    places = np.zeros(256, np.uint8)
    for index, value in reversed([*enumerate(own.codebook)]):
        places[value + 128] = index
    q = places[np.rint(units).astype(np.int16) + 128]
    return {
        "q": q.reshape(len(rows), -1),
        "q_scale": d.astype(own.floats),
        "q_sub": subs.reshape(len(rows), -1),
    }
