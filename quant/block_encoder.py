"""Encodes weights in block formats (`wherry.ops.blocks`): the inverse of `BlockQuant.decode`.

The scale of each group, and its minimum, are found by search. Formats with two levels then round
the scales of a block's groups to multiples of a common d, and the minimums to multiples of dmin.
The weights are rounded last, with the scales that are stored. The stored bytes of these multiples
have more values than the 4 or 6 bits of llama.cpp's own files, and the encoder uses them, because
it costs no memory here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import BlockFormat

from .search import Floats, Levels, best_scales, folded, integers
from .search_minimum import best_lines
from .stored import cast

VERSION = 1  # of the algorithm; the hash of a conversion covers it
# Number of weights that are encoded at once; the float32 temporaries then fit into L2.
_BLOCK = 1 << 16
# Ways of rounding that the search tries, by the number of values of an integer, without a minimum.
_SYMMETRIC = {
    8: (-4.0, -3.6, -3.2, -4.4, -4.8, 3.0, 2.6, 3.4, 3.8),
    64: (-32.0, -31.5, -32.6, -33.2, 31.0, 30.5),
}
# and with one, by the largest integer
_LINES = {
    3: (3.0, 2.6, 3.4, 2.2, 3.8),
    15: (15.0, 14.5, 15.5, 14.0, 16.0, 13.5),
    31: (31.0, 30.5, 31.5, 30.0),
}
# Largest values of codebooks in the unit of the group's largest weight, relative to the codebook's
_CODES = (1.0, 0.92, 1.08, 0.85)


def encodes(own: BlockFormat) -> bool:
    """Return whether `encode` knows a format."""
    count = 2 ** (own.low + own.high)
    if own.codebook:
        return own.bytes is None
    return own.two_levels and (count - 1 in _LINES if own.minimum else count in _SYMMETRIC)


def encode(own: BlockFormat, w: Floats) -> dict[str, NDArray[Any]]:
    """Encode rows w float32 [rows, in] -> the stored tensors of the format by name.

    `in` is a multiple of `own.multiple`. A scale of a block with an infinity or NaN is not finite.
    """
    rows, columns = w.shape
    step = max(1, _BLOCK // columns)
    parts = [_encoded(own, w[start : start + step]) for start in range(0, rows, step)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _encoded(own: BlockFormat, w: Floats) -> dict[str, NDArray[Any]]:
    """Encode a few rows, as `encode` does."""
    rows = len(w)
    groups = np.ascontiguousarray(w.reshape(-1, own.group).T)
    with np.errstate(invalid="ignore", over="ignore"):  # the caller detects non-finite scales
        if own.minimum:
            scales, minimums = best_lines(groups, 2**own.bits - 1, _LINES[2**own.bits - 1])
            scale, stored = _levels(own, scales.reshape(rows, -1), "q_scale", "q_sub")
            least, more = _levels(own, -minimums.reshape(rows, -1), "q_min", "q_submin")
            stored |= more
            shifted = groups + least.reshape(-1)
            divisor = np.where(scale == 0, np.float32(np.inf), scale).reshape(-1)
            q = np.clip(np.rint(shifted / divisor), 0, 2**own.bits - 1)
        else:
            scale, stored = _levels(own, _scales(own, groups).reshape(rows, -1))
            q = _integers(own, groups, scale.reshape(-1))
        q = np.nan_to_num(q, nan=0.0).astype(np.uint8)
    found = _fields(own, np.ascontiguousarray(q.T).reshape(w.shape)) | stored
    return {name: found[name] for name in own.columns}


def _scales(own: BlockFormat, groups: Floats) -> Floats:
    """Return the best scales [n] of groups [group, n] without a minimum."""
    if own.codebook:
        return _code_scales(own.codebook, groups)
    return best_scales(groups, _symmetric(own))


def _symmetric(own: BlockFormat) -> Levels:
    count = 2**own.bits
    return Levels(least=-own.zero, most=count - 1 - own.zero, tried=_SYMMETRIC[count])


def _integers(own: BlockFormat, groups: Floats, scale: Floats) -> Floats:
    """Round groups [group, n] with scales [n] -> unsigned integers as floats."""
    if not own.codebook:
        return integers(groups, scale, _symmetric(own)) + np.float32(own.zero)
    divisor: Floats = np.where(scale == 0, np.float32(np.inf), scale)
    unit: Floats = groups / divisor
    return _nearest(own.codebook)(unit).astype(np.float32)


def _nearest(codebook: tuple[int, ...]) -> Callable[[Floats], NDArray[np.intp]]:
    """Return a function from numbers to the indexes of the nearest values of a codebook."""
    values = np.array(codebook, np.float32)
    # Halves between two integers are halves, so a table over multiples of 1/2 is exact.
    halves = np.arange(-256, 256, dtype=np.float32) / 2
    middles = (values[1:] + values[:-1]) / 2
    table = np.searchsorted(middles, halves, side="right").astype(np.intp)

    def nearest(x: Floats) -> NDArray[np.intp]:
        at = np.nan_to_num(np.floor(x * np.float32(2)), nan=0.0)
        found: NDArray[np.intp] = table[np.clip(at, -256, 255).astype(np.intp) + 256]
        return found

    return nearest


def _code_scales(codebook: tuple[int, ...], w: Floats) -> Floats:
    """Return the best scales [n] of groups w [group, n] for a codebook, as `best_scales`."""
    values, nearest = np.array(codebook, np.float32), _nearest(codebook)
    high, low = w.max(0), w.min(0)
    largest = np.where(high >= -low, high, low)
    finite = np.isfinite(largest)
    some = finite & (np.abs(largest) >= np.float32(2.0**-100))
    largest = np.where(some, largest, np.float32(1))
    unit = (np.where(some, w, np.float32(0)) / largest).astype(np.float32, copy=False)
    best = np.zeros(w.shape[1], np.float32)
    ratio = np.zeros_like(best)
    for k in (end * share for share in _CODES for end in (values[-1], values[0])):
        q = values[nearest(unit * np.float32(k))]
        a, b = folded(unit * q), np.maximum(folded(q * q), np.float32(1))
        found = a * a / b
        better = found > best
        np.copyto(best, found, where=better)
        np.copyto(ratio, a / b, where=better)
    return np.where(finite, largest * ratio, np.float32(np.inf))


def _levels(
    own: BlockFormat, scales: Floats, first: str = "q_scale", second: str = "q_sub"
) -> tuple[Floats, dict[str, NDArray[Any]]]:
    """Round scales [rows, groups] to what is stored.

    Returns the rounded ones, float32 [rows, groups], and the stored tensors `first` and, with two
    levels, `second`. Minimums of two levels are stored with the opposite sign and no bias.
    """
    if own.bias is None:
        held = cast(scales, "float16")
        return held.astype(np.float32), {first: held}
    rows, count = scales.shape
    per = own.block // own.group
    blocks = np.pad(scales, ((0, 0), (0, -count % per))).reshape(rows, -1, per)
    bias = own.bias if second == "q_sub" else 0
    most = bias - 1 if bias else 255  # of both signs, or from 0
    at = np.abs(blocks).argmax(2)[..., None]
    largest = np.take_along_axis(blocks, at, 2)[..., 0]
    d = _away(largest / np.float32(most))
    divisor = np.where(d == 0, np.inf, d).astype(np.float32)[..., None]
    steps = np.clip(np.rint(blocks / divisor), -most if bias else 0, most)
    steps = np.nan_to_num(steps, nan=0.0)
    rounded = steps * d.astype(np.float32)[..., None]
    bytes_ = (steps + np.float32(bias)).astype(np.uint8).reshape(rows, -1)[:, :count]
    bytes_ = np.pad(bytes_, ((0, 0), (0, -count % 4)))
    words = np.ascontiguousarray(bytes_).view("<u4").astype(np.uint32, copy=False)
    return rounded.reshape(rows, -1)[:, :count].astype(np.float32), {first: d, second: words}


def _away(d: Floats) -> NDArray[np.float16]:
    """Round to float16 away from 0, so that the largest scale of a block is within its bytes."""
    near = cast(d, "float16")
    short = np.abs(near.astype(np.float32)) < np.abs(d)
    return np.where(short, np.nextafter(near, np.copysign(np.float16(np.inf), near)), near)


def _fields(own: BlockFormat, q: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return q_weight and q_high of integers q [rows, in]."""
    found = {"q_weight": words(q & (2**own.low - 1), own.low)}
    return found | ({"q_high": words(q >> own.low, own.high)} if own.high else {})


def words(fields: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """Pack unsigned fields [rows, n] into words [rows, ceil(n * bits / 32)], lowest first."""
    per = 32 // bits
    if spare := -fields.shape[-1] % per:
        fields = np.pad(fields, ((0, 0), (0, spare)))
    apart = fields.astype(np.uint32).reshape(len(fields), -1, per)
    shifts = np.arange(per, dtype=np.uint32) * np.uint32(bits)
    packed: NDArray[np.uint32] = np.bitwise_or.reduce(apart << shifts, axis=-1)
    return packed
