"""Searches for the scale and the minimum with which integers approximate a group of weights best.

As `search.py`, for w ~ q s + m with integers q from 0 to a largest one and a minimum m <= 0. For
given integers, the best s and m are those of linear regression; where its m is positive, m is 0 and
the best s is a / b as in `search.py`. The search rounds the weights in several ways and selects
the one with the least error. Each way is a number k: q = (w - low) / (high - low) * k, where low
is the least weight, or 0 if that is positive, and high the largest.

All steps are float32 operations in a fixed order, so the result is the same on every machine.
"""

from __future__ import annotations

import numpy as np

from .search import LEAST, Floats, Total, folded


def best_lines(
    w: Floats, most: int, tried: tuple[float, ...], total: Total | None = None
) -> tuple[Floats, Floats]:
    """Return the best scales and minimums, float32 [n], unrounded, for weights w [group, n].

    Each column of w is one group. The scale of a group with an infinity or NaN is infinite.

    Args:
        w: the weights; without `total` the number of rows is a power of two.
        most: the largest integer.
        tried: values of k; the first of equally good ones wins.
        total: as in `search.best_scales`.
    """
    low: Floats = np.minimum(w.min(0), np.float32(0)).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        width = w.max(0) - low  # max and min propagate NaN
    finite = np.isfinite(width)
    width = np.where(width == 0, -low, width)  # all weights are the same
    some = finite & (width >= LEAST)
    width = np.where(some, width, np.float32(1))
    low = np.where(some, low, np.float32(0))
    # the weights in the unit of the width, so that no sum overflows
    unit = (np.where(some, w, np.float32(0)) / width).astype(np.float32, copy=False)
    own_low = (low / width).astype(np.float32)
    scale, minimum = _fitted(unit, own_low, most, tried, total or folded)
    infinite = np.float32(np.inf)
    return np.where(finite, width * scale, infinite).astype(np.float32), width * minimum


def _fitted(
    unit: Floats, low: Floats, most: int, tried: tuple[float, ...], total: Total
) -> tuple[Floats, Floats]:
    """Return scale and minimum [n] for weights `unit` [group, n] within [low, low + 1]."""
    count = np.float32(total(np.ones((len(unit), 1), np.float32))[0])
    from_low = unit - low
    sum_w = total(unit.copy())
    least = np.full(unit.shape[1], np.inf, np.float32)
    scale, minimum = np.zeros_like(least), np.zeros_like(least)
    q, product = np.empty_like(unit), np.empty_like(unit)
    for k in tried:
        np.multiply(from_low, np.float32(k), out=q)
        np.rint(q, out=q)
        np.clip(q, np.float32(0), np.float32(most), out=q)
        wq = total(np.multiply(unit, q, out=product))
        qq = total(np.multiply(q, q, out=product))
        product[:] = q
        sum_q = total(product)
        spread = count * qq - sum_q * sum_q
        # Sums of equal integers differ by rounding alone.
        apart = spread > np.float32(1e-5) * count * qq
        s = np.divide(count * wq - sum_q * sum_w, spread, out=np.zeros_like(qq), where=apart)
        m = (sum_w - s * sum_q) / count
        above = m > 0
        s = np.where(above, np.divide(wq, qq, out=np.zeros_like(qq), where=qq > 0), s)
        m = np.where(above, np.float32(0), m)
        # sum (w - q s - m)^2 less sum w^2, which is the same for all k
        error = s * (s * qq - 2 * wq) + m * (count * m - 2 * sum_w + 2 * s * sum_q)
        better = (error < least) & (s >= 0)
        np.copyto(least, error, where=better)
        np.copyto(scale, s, where=better)
        np.copyto(minimum, m, where=better)
    return scale, minimum
