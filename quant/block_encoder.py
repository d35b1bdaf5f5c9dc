"""Encodes weights in block formats (`wherry.ops.blocks`): the inverse of `BlockQuant.decode`.

The scale of each group, and its minimum, are found by search. Formats with two levels then round
the scales of a block's groups to multiples of a common d, and the minimums to multiples of dmin.
The weights are rounded last, with the scales that are stored. The stored bytes of these multiples
have more values than the 4 or 6 bits of llama.cpp's own files, and the encoder uses them, because
it costs no memory here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import IQ4, BlockFormat

from .grid import Integers, Scales, padded, words
from .search import Floats, Levels, Total, best_ratios, best_scales, folded, scaled, weighted
from .search_minimum import best_lines
from .stored import cast
from .trellis.paths import best_trellis_scales

VERSION = 2  # of the algorithm; the hash of a conversion covers it
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
    if own.trellis:
        return True
    if own.codebook:
        return own.codebook == IQ4
    return own.two_levels and (count - 1 in _LINES if own.minimum else count in _SYMMETRIC)


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """What weights of a block format are rounded to, for formats that `encodes` knows."""

    own: BlockFormat

    @property
    def group(self) -> int:
        """Return the number of columns that share a scale."""
        return self.own.group

    @property
    def block(self) -> int:
        """Return the number of columns whose scales are found together."""
        return self.own.block

    @property
    def path_bits(self) -> int:
        """Return the bits of integers whose values depend on those before; 0: they do not."""
        return self.own.bits if self.own.trellis else 0

    def scales(self, w: Floats, importance: Floats | None = None) -> Scales:
        """Find the scales of the groups of a block, then round them: see `Grid.scales`."""
        scale, minimum = self._fit(w, importance)
        with np.errstate(invalid="ignore", over="ignore"):  # the caller detects such scales
            stored, arrays = _levels(self.own, scale.T, "q_scale", "q_sub")
            if minimum is None:
                return Scales(stored.T, None, arrays)
            least, more = _levels(self.own, -minimum.T, "q_min", "q_submin")
        return Scales(stored.T, -least.T, arrays | more)

    def _fit(self, w: Floats, importance: Floats | None) -> tuple[Floats, Floats | None]:
        """Return the best scales and minimums [groups, n] of w [columns, n]."""
        group, n = self.own.group, w.shape[1]
        with np.errstate(invalid="ignore", over="ignore"):  # the caller detects such scales
            if importance is None:
                apart = w.reshape(-1, group, n).swapaxes(0, 1).reshape(group, -1)
                scale, minimum = self._best(apart, None)
                return scale.reshape(-1, n), None if minimum is None else minimum.reshape(-1, n)
            fitted = [
                self._best(w[start : start + group], importance[start : start + group])
                for start in range(0, len(w), group)
            ]
        minimums = [minimum for _, minimum in fitted if minimum is not None]
        return np.stack([scale for scale, _ in fitted]), np.stack(minimums) if minimums else None

    def _best(self, groups: Floats, importance: Floats | None) -> tuple[Floats, Floats | None]:
        """Return the best scales and minimums [n] of groups [group, n]."""
        if self.own.trellis:
            return best_trellis_scales(groups, importance, self.own.bits), None
        total = None if importance is None else weighted(importance)
        if self.own.minimum:
            most = 2**self.own.bits - 1
            return best_lines(groups, most, _LINES[most], total)
        if self.own.codebook:
            return _code_scales(self.own.codebook, groups, total or folded), None
        return best_scales(groups, _symmetric(self.own), total), None

    def nearest(self, units: Floats) -> Integers:
        """Return the nearest stored integers: see `Grid.nearest`."""
        if self.own.codebook:
            return _nearest(self.own.codebook)(units).astype(np.uint8)
        q = np.rint(units) + np.float32(self.own.zero)
        q = np.clip(np.nan_to_num(q, nan=0.0), 0, 2**self.own.bits - 1)
        return q.astype(np.uint8)

    def values(self, q: Integers) -> Floats:
        """Return the values of stored integers."""
        if self.own.codebook:
            decoded: Floats = np.array(self.own.codebook, np.float32)[q]
            return decoded
        return q.astype(np.float32) - np.float32(self.own.zero)

    def fields(self, q: Integers) -> dict[str, NDArray[Any]]:
        """Return q_weight and q_high of integers q [n, columns]."""
        own = self.own
        integers = {"q_weight": words(q & (2**own.low - 1), own.low)}
        return integers | ({"q_high": words(q >> own.low, own.high)} if own.high else {})


def _symmetric(own: BlockFormat) -> Levels:
    count = 2**own.bits
    return Levels(least=-own.zero, most=count - 1 - own.zero, tried=_SYMMETRIC[count])


def _nearest(codebook: tuple[int, ...]) -> Callable[[Floats], NDArray[np.intp]]:
    """Return a function from numbers to the indexes of the nearest values of a codebook."""
    values = np.array(codebook, np.float32)
    # Halves between two integers are halves, so a table over multiples of 1/2 is exact.
    halves = np.arange(-256, 256, dtype=np.float32) / 2
    middles = (values[1:] + values[:-1]) / 2
    table = np.searchsorted(middles, halves, side="right").astype(np.intp)

    def nearest(x: Floats) -> NDArray[np.intp]:
        at = np.nan_to_num(np.floor(x * np.float32(2)), nan=0.0)
        indices: NDArray[np.intp] = table[np.clip(at, -256, 255).astype(np.intp) + 256]
        return indices

    return nearest


def _code_scales(codebook: tuple[int, ...], w: Floats, total: Total) -> Floats:
    """Return the best scales [n] of groups w [group, n] for a codebook, as `best_scales`."""
    values, nearest = np.array(codebook, np.float32), _nearest(codebook)
    tried = [end * share for share in _CODES for end in (values[-1], values[0])]

    def ratios(unit: Floats) -> Floats:
        ways = (values[nearest(unit * np.float32(k))] for k in tried)
        return best_ratios(ways, unit, total)

    return scaled(w, ratios)


def _levels(
    own: BlockFormat, scales: Floats, first: str = "q_scale", second: str = "q_sub"
) -> tuple[Floats, dict[str, NDArray[Any]]]:
    """Round scales [rows, groups] to what is stored.

    Returns the rounded ones, float32 [rows, groups], and the stored tensors `first` and, with two
    levels, `second`. Minimums of two levels are stored with the opposite sign and no bias.
    """
    if own.bias is None:
        half = cast(scales, "float16")
        return half.astype(np.float32), {first: half}
    rows, count = scales.shape
    per = own.block // own.group
    blocks = padded(scales, per).reshape(rows, -1, per)
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
    words = np.ascontiguousarray(padded(bytes_, 4)).view("<u4").astype(np.uint32, copy=False)
    return rounded.reshape(rows, -1)[:, :count].astype(np.float32), {first: d, second: words}


def _away(d: Floats) -> NDArray[np.float16]:
    """Round to float16 away from 0, so that the largest scale of a block is within its bytes."""
    near = cast(d, "float16")
    short = np.abs(near.astype(np.float32)) < np.abs(d)
    return np.where(short, np.nextafter(near, np.copysign(np.float16(np.inf), near)), near)
