"""Searches for the scale with which integers approximate a group of weights best.

For the weights w of a group, the search minimizes the error sum (w - q s)^2 over the integers q and
the scale s. For given integers, the best s is a / b with a = sum w q and b = sum q^2, and the error
is sum w^2 - a^2 / b. The search therefore rounds the weights in several ways and selects the one
with the largest a^2 / b. Each way is a number k: q = w / m * k, rounded to nearest and clipped,
where m is the weight of the largest magnitude, so that m becomes about k. k may be negative,
because with 4 bits the largest integer is 8 and the smallest -7. Finally, the integers are rounded
again with the stored scale.

All steps are float32 operations in a fixed order, so the result is the same on every machine,
unless the rows differ in importance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A group without a weight of at least this magnitude is encoded as zeros: dividing by its largest
# weight would overflow.
LEAST = np.float32(2.0**-100)
Floats = NDArray[np.float32]
Total = Callable[[Floats], Floats]  # [group, n] -> [n]


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The range of the integers, and the ways of rounding that the search tries."""

    least: int
    most: int
    tried: tuple[float, ...]  # values of k; the first of equally good ones wins


def best_scales(w: Floats, levels: Levels, total: Total | None = None) -> Floats:
    """Return the best scales float32 [n], unrounded, for weights w [group, n].

    Each column of w is one group. The scale of a group with an infinity or NaN is infinite.

    Args:
        w: the weights; without `total` the number of rows is a power of two.
        levels: the integers, and the ways that are tried.
        total: sums over the rows, with their importance; None: all rows count alike.
    """
    return scaled(w, lambda unit: _ratios(unit, levels, total or folded))


def scaled(w: Floats, ratios: Callable[[Floats], Floats]) -> Floats:
    """Return scales [n] of w [group, n], from those of groups whose largest weight is 1.

    The scale of a group with an infinity or NaN is infinite.
    """
    high, low = w.max(0), w.min(0)
    largest = np.where(high >= -low, high, low)
    finite = np.isfinite(largest)  # max and min propagate NaN
    some = finite & (np.abs(largest) >= LEAST)
    largest = np.where(some, largest, np.float32(1))
    unit = (np.where(some, w, np.float32(0)) / largest).astype(np.float32, copy=False)
    return np.where(finite, largest * ratios(unit), np.float32(np.inf))


def best_ratios(ways: Iterable[Floats], unit: Floats, total: Total) -> Floats:
    """Return for each column of `unit` [group, n] the a / b of the way with the largest a^2 / b.

    Args:
        ways: values [group, n] that the weights are rounded to, by each way.
        unit: the weights.
        total: sums over the rows; it may overwrite its argument.
    """
    best = np.zeros(unit.shape[1], np.float32)
    ratio = np.zeros_like(best)
    product = np.empty_like(unit)
    for q in ways:
        a = total(np.multiply(unit, q, out=product))
        b = total(np.multiply(q, q, out=product))
        known = b > 0
        gain = np.divide(a * a, b, out=np.zeros_like(a), where=known)
        better = gain > best
        np.copyto(best, gain, where=better)
        np.copyto(ratio, np.divide(a, b, out=np.zeros_like(a), where=known), where=better)
    return ratio


def _ratios(unit: Floats, levels: Levels, total: Total) -> Floats:
    """Return the best ratios of integers as values."""
    q = np.empty_like(unit)

    def ways() -> Iterator[Floats]:
        for k in levels.tried:
            np.multiply(unit, np.float32(k), out=q)
            to_integers(q, levels)
            yield q

    return best_ratios(ways(), unit, total)


def weighted(importance: Floats) -> Total:
    """Return a function that sums rows with their importance [group]: [group, n] -> [n]."""
    return lambda x: importance @ x


def folded(x: Floats) -> Floats:
    """Return the sums [n] over the first axis of x, whose length is a power of two; overwrites x.

    It adds the second half to the first until one row is left, because the order of NumPy's own
    sum depends on the shape.
    """
    rows = len(x)
    while rows > 1:
        rows //= 2
        np.add(x[:rows], x[rows : 2 * rows], out=x[:rows])
    total: Floats = x[0].copy()
    return total


def to_integers(q: Floats, levels: Levels) -> None:
    """Round q to the nearest integers within the range, in place."""
    np.rint(q, out=q)
    np.clip(q, np.float32(levels.least), np.float32(levels.most), out=q)
