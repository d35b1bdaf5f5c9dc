"""Takes raw blocks of llama.cpp's types apart; the structs are in its ggml-common.h.

Each function takes raw rows, uint8 [rows, bytes of a row], and returns arrays [rows, ...]: `q`, the
integers of the weights in their order, and those of `q_scale`, `q_min`, `q_sub`, `q_submin` that
the type has, one element for a block or group.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .raw_grids import GRIDS, unpack_grid

Raw = NDArray[np.uint8]
Fields = dict[str, NDArray[Any]]


def _cut(blocks: Raw, *sizes: int) -> list[Raw]:
    """Cut rows into fields of `sizes` bytes: each [rows, blocks of a row, size]."""
    apart = blocks.reshape(len(blocks), -1, sum(sizes))
    return np.split(apart, np.cumsum(sizes)[:-1], axis=2)


def _half(field: Raw) -> NDArray[np.float16]:
    """Return the float16 of each block, [rows, blocks]."""
    return np.ascontiguousarray(field).view("<f2")[..., 0].astype(np.float16, copy=False)


def _shifted(field: Raw, run: int, bits: int) -> Raw:
    """Unpack fields of `bits` bits, [rows, blocks, n].

    The lowest bits of each `run` bytes belong to `run` weights, the next ones to the following.
    """
    shifts = np.arange(8 // bits, dtype=np.uint8)[:, None] * np.uint8(bits)
    apart = field.reshape(*field.shape[:2], -1, 1, run) >> shifts & np.uint8(2**bits - 1)
    return apart.reshape(*field.shape[:2], -1)


def _rows(fields: Fields) -> Fields:
    """Join the blocks of each row."""
    return {name: array.reshape(len(array), -1) for name, array in fields.items()}


def _bits(field: Raw) -> Raw:
    """Unpack 32 bits of 4 bytes, lowest first: [rows, blocks, 32]."""
    return np.unpackbits(np.ascontiguousarray(field), axis=-1, bitorder="little")


def _q4_0(blocks: Raw) -> Fields:
    d, qs = _cut(blocks, 2, 16)
    return _rows({"q": _shifted(qs, 16, 4), "q_scale": _half(d)})


def _q4_1(blocks: Raw) -> Fields:
    d, m, qs = _cut(blocks, 2, 2, 16)
    return _rows({"q": _shifted(qs, 16, 4), "q_scale": _half(d), "q_min": _half(m)})


def _q5_0(blocks: Raw) -> Fields:
    d, high, qs = _cut(blocks, 2, 4, 16)
    q = _shifted(qs, 16, 4) | _bits(high) << np.uint8(4)
    return _rows({"q": q, "q_scale": _half(d)})


def _q5_1(blocks: Raw) -> Fields:
    d, m, high, qs = _cut(blocks, 2, 2, 4, 16)
    q = _shifted(qs, 16, 4) | _bits(high) << np.uint8(4)
    return _rows({"q": q, "q_scale": _half(d), "q_min": _half(m)})


def _q8_0(blocks: Raw) -> Fields:
    d, qs = _cut(blocks, 2, 32)
    return _rows({"q": qs ^ np.uint8(128), "q_scale": _half(d)})


def _q2_k(blocks: Raw) -> Fields:
    scales, qs, d, dmin = _cut(blocks, 16, 64, 2, 2)
    sub, submin = scales & np.uint8(15), scales >> np.uint8(4)
    fields: Fields = {"q": _shifted(qs, 32, 2), "q_scale": _half(d), "q_min": _half(dmin)}
    return _rows(fields | {"q_sub": sub, "q_submin": submin})


def _q3_k(blocks: Raw) -> Fields:
    high, qs, scales, d = _cut(blocks, 32, 64, 12, 2)
    q = _shifted(qs, 32, 2) | _shifted(high, 32, 1) << np.uint8(2)
    sub = _shifted(scales[..., :8], 8, 4) | _shifted(scales[..., 8:], 4, 2) << np.uint8(4)
    return _rows({"q": q, "q_scale": _half(d), "q_sub": sub})


def _scales_of_6_bits(scales: Raw) -> tuple[Raw, Raw]:
    """Unpack the scales and minimums of Q4_K and Q5_K: [rows, blocks, 12] -> twice [., ., 8]."""
    low, mins, both = np.split(scales, 3, axis=2)
    sub = [low & np.uint8(63), both & np.uint8(15) | low >> np.uint8(2) & np.uint8(48)]
    submin = [mins & np.uint8(63), both >> np.uint8(4) | mins >> np.uint8(2) & np.uint8(48)]
    return np.concatenate(sub, axis=2), np.concatenate(submin, axis=2)


def _q4_k(blocks: Raw) -> Fields:
    d, dmin, scales, qs = _cut(blocks, 2, 2, 12, 128)
    sub, submin = _scales_of_6_bits(scales)
    fields: Fields = {"q": _shifted(qs, 32, 4), "q_scale": _half(d), "q_min": _half(dmin)}
    return _rows(fields | {"q_sub": sub, "q_submin": submin})


def _q5_k(blocks: Raw) -> Fields:
    d, dmin, scales, high, qs = _cut(blocks, 2, 2, 12, 32, 128)
    sub, submin = _scales_of_6_bits(scales)
    q = _shifted(qs, 32, 4) | _shifted(high, 32, 1) << np.uint8(4)
    fields: Fields = {"q": q, "q_scale": _half(d), "q_min": _half(dmin)}
    return _rows(fields | {"q_sub": sub, "q_submin": submin})


def _q6_k(blocks: Raw) -> Fields:
    low, high, scales, d = _cut(blocks, 128, 64, 16, 2)
    q = _shifted(low, 64, 4) | _shifted(high, 32, 2) << np.uint8(4)
    return _rows({"q": q, "q_scale": _half(d), "q_sub": scales ^ np.uint8(128)})


def _digits(field: Raw, run: int, count: int) -> Raw:
    """Unpack `count` digits of base 3 of each byte, [rows, blocks, n], in the order of `_shifted`.

    A byte is a fraction of 256: times 3, what exceeds 255 is its first digit.
    """
    powers = 3 ** np.arange(count, dtype=np.uint8)[:, None]
    rest = field.reshape(*field.shape[:2], -1, 1, run) * powers  # without the digits before
    digits: Raw = (rest.astype(np.uint16) * 3 >> 8).astype(np.uint8)
    return digits.reshape(*field.shape[:2], -1)


def _tq1_0(blocks: Raw) -> Fields:
    first, second, high, d = _cut(blocks, 32, 16, 4, 2)
    parts = [_digits(first, 32, 5), _digits(second, 16, 5), _digits(high, 4, 4)]
    return _rows({"q": np.concatenate(parts, axis=2), "q_scale": _half(d)})


def _tq2_0(blocks: Raw) -> Fields:
    qs, d = _cut(blocks, 64, 2)
    return _rows({"q": _shifted(qs, 32, 2), "q_scale": _half(d)})


def _q1_0(blocks: Raw) -> Fields:
    d, qs = _cut(blocks, 2, 16)
    return _rows({"q": 2 * _bits(qs), "q_scale": _half(d)})


def _q2_0(blocks: Raw) -> Fields:
    d, qs = _cut(blocks, 2, 16)
    return _rows({"q": _shifted(qs, 1, 2), "q_scale": _half(d)})


def _iq4_xs(blocks: Raw) -> Fields:
    d, high, low, qs = _cut(blocks, 2, 2, 4, 128)
    # Low nibbles are the even groups, two bits of each byte of `high` belong to one group.
    nibbles = np.stack([low & np.uint8(15), low >> np.uint8(4)], axis=-1)
    pairs = high[..., None] >> np.array([0, 2, 4, 6], np.uint8) & np.uint8(3)
    sub = nibbles.reshape(*low.shape[:2], 8) | pairs.reshape(*high.shape[:2], 8) << np.uint8(4)
    return _rows({"q": _shifted(qs, 16, 4), "q_scale": _half(d), "q_sub": sub})


def _mxfp4(blocks: Raw) -> Fields:
    e, qs = _cut(blocks, 1, 16)
    # An exponent of 255 is no number; the conversion reports scales that are not finite.
    scale = np.where((e == 255).any(axis=1), np.nan, 0.5).astype(np.float32)
    return _rows({"q": _shifted(qs, 16, 4), "q_sub": e, "q_scale": scale})


def _nvfp4(blocks: Raw) -> Fields:
    scales, qs = _cut(blocks, 4, 32)
    used = scales & np.uint8(127)
    used = np.where(used == 127, np.uint8(0), used)  # no number, which llama.cpp reads as 0
    q = _shifted(qs, 8, 4)
    return _rows({"q": q, "q_sub": used, "q_scale": np.full((len(qs), 1), 0.5, np.float32)})


# llama.cpp's name of a type -> the function that takes its blocks apart.
UNPACK: dict[str, Callable[[Raw], Fields]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "TQ1_0": _tq1_0,
    "TQ2_0": _tq2_0,
    "Q1_0": _q1_0,
    "Q2_0": _q2_0,
    **{name: partial(unpack_grid, name) for name in GRIDS},
    "IQ4_NL": _q4_0,
    "IQ4_XS": _iq4_xs,
    "MXFP4": _mxfp4,
    "NVFP4": _nvfp4,
}
