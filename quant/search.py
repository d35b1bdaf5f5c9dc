"""Encodes groups of weights as integers times one scale, by a search for the scale.

For weights w of a group, the integers q and the scale s shall have the least sum of h (w - q s)^2,
where h are the weights' importances. For given integers the best s is a / b with a = sum h w q and
b = sum h q^2, and the error is sum h w^2 - a^2 / b: so of some ways to round, the one with the
largest a^2 / b is taken. A way to round is a number k: q = w / m * k, rounded to nearest and
clipped, where m is the weight of the largest magnitude. Thus m becomes about k; k may be negative,
because integers reach one further up than down. At the end the integers are rounded again with the
scale as it is stored.

All steps are float32 operations in a fixed order, so the result is the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Groups whose largest weight is smaller hold zeros: its inverse would be infinite.
LEAST = np.float32(2.0**-100)
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The integers of a group, and the ways to round that a search tries."""

    least: int
    most: int
    tried: tuple[float, ...]  # values of k, the first of equally good ones is taken


def best_scales(w: Floats, levels: Levels) -> Floats:
    """w [group, n], a group a column -> scales [n] float32, before they are rounded.

    A group with an infinite or missing number has a scale that is not finite.
    """
    high, low = w.max(0), w.min(0)
    largest = np.where(high >= -low, high, low)
    finite = np.isfinite(largest)  # a NaN is the largest, too
    some = finite & (np.abs(largest) >= LEAST)
    largest = np.where(some, largest, np.float32(1))
    unit = (np.where(some, w, np.float32(0)) / largest).astype(np.float32, copy=False)
    return np.where(finite, largest * _ratios(unit, levels), np.float32(np.inf))


def _ratios(unit: Floats, levels: Levels) -> Floats:
    """The a / b of each column that has the largest a^2 / b."""
    best = np.zeros(unit.shape[1], np.float32)
    ratio = np.zeros_like(best)
    q, product = np.empty_like(unit), np.empty_like(unit)
    for k in levels.tried:
        np.multiply(unit, np.float32(k), out=q)
        _round(q, levels)
        a = folded(np.multiply(unit, q, out=product))
        b = np.maximum(folded(np.multiply(q, q, out=product)), np.float32(1))
        found = a * a / b
        better = found > best
        np.copyto(best, found, where=better)
        np.copyto(ratio, a / b, where=better)
    return ratio


def folded(x: Floats) -> Floats:
    """The sums [n] of x [a power of two, n], which is overwritten.

    Its second half is added to the first until a row is left: NumPy's own sum has an order that
    depends on the shape.
    """
    rows = len(x)
    while rows > 1:
        rows //= 2
        np.add(x[:rows], x[rows : 2 * rows], out=x[:rows])
    total: Floats = x[0].copy()
    return total


def integers(w: Floats, scales: NDArray[Any], levels: Levels) -> Floats:
    """w [group, n], scales [n] as stored -> the nearest integers, float32; 0 if a scale is 0."""
    divisor = np.where(scales == 0, np.inf, scales).astype(np.float32)
    with np.errstate(invalid="ignore"):  # the caller sees the scale
        q = w / divisor
    _round(q, levels)
    return q


def _round(q: Floats, levels: Levels) -> None:
    np.rint(q, out=q)
    np.clip(q, np.float32(levels.least), np.float32(levels.most), out=q)
