"""Unpacks integers of a few bits, and decodes floats of 4 and 8 bits, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..unpack import FP4


def unpack(words: NDArray[Any], bits: int, count: int) -> NDArray[np.uint8]:
    """Unpack words [..., w] of 32 bits -> uint8 [..., count], the lowest bits first.

    The bits are one stream: an integer of 3, 5 or 6 bits may begin in one word and end in the next.
    """
    words = np.ascontiguousarray(words).view("<u4")
    if bits == 8:
        return words.view(np.uint8)[..., :count]
    if bits == 4:
        pairs = words.view(np.uint8)
        return np.stack([pairs & 15, pairs >> 4], -1).reshape(*words.shape[:-1], -1)[..., :count]
    stream = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
    stored = stream.shape[-1] // bits
    single = stream[..., : stored * bits].reshape(*words.shape[:-1], stored, bits)[..., :count, :]
    return np.packbits(single, axis=-1, bitorder="little")[..., 0]


def words_of(count: int, bits: int) -> int:
    """Return the number of words of 32 bits that hold `count` integers."""
    return -(-count * bits // 32)


def fp4(codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Decode E2M1 numbers: bytes [..., n] -> [..., 2 n], the low half of each byte first."""
    pairs = FP4[np.stack([codes & 15, codes >> 4], -1)]
    return pairs.reshape(*codes.shape[:-1], -1)


def _table(exponent_bits: int, mantissa_bits: int) -> NDArray[np.float32]:
    """Return the magnitudes and the negative values of all finite codes of 8 bits."""
    codes = np.arange(256)
    exponent = codes >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = codes & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    significand = np.where(exponent == 0, mantissa, mantissa + (1 << mantissa_bits))
    power = np.maximum(exponent, 1) - bias - mantissa_bits
    values = np.ldexp(significand.astype(np.float32), power).astype(np.float32)
    signed: NDArray[np.float32] = np.where(codes < 128, values, -values)
    return signed


# E4M3 has no infinities, only the NaNs 0x7F and 0xFF; E5M2 has those of IEEE 754.
# Source: https://arxiv.org/abs/2209.05433.
E4M3 = _table(4, 3)
E4M3[[0x7F, 0xFF]] = np.nan
E5M2 = _table(5, 2)
E5M2[[0x7C, 0xFC]] = np.inf, -np.inf
E5M2[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
# Powers of two, 2^-127 to 2^127; 255 is NaN.
E8M0 = np.append(np.ldexp(np.float32(1), np.arange(255) - 127), np.nan).astype(np.float32)
TABLES = {"F8_E4M3": E4M3, "F8_E5M2": E5M2, "F8_E8M0": E8M0}
