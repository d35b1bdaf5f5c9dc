"""Encodes matrices with error feedback, in the layout of group quantization.

A layer computes x w^T. With the inputs x of a calibration text, H = sum x^T x, the error of its
results after an error e = w - w' of a row of weights is e H e^T. Rounding each weight to its
nearest level ignores that inputs are correlated. Error feedback rounds the columns one after
another, and adds to each column what makes up for the errors of the columns before it, as GPTQ does
(Frantar et al., 2022, https://arxiv.org/abs/2210.17323).

With H = V V^T, V upper triangular, e H e^T is the sum over j of

    (V_jj (e_j + sum over k < j of R_kj e_k))^2,     R_kj = V_kj / V_jj

so column j is best rounded from w_j + sum R_kj e_k, and an error in it counts V_jj^2. The scale of
a group is searched with these weights when its first column is reached. This is GPTQ without the
inverse of H.

Results depend on the last bits of matrix products, so they may differ between machines, unlike
those of `GroupQuant.encode`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .group import GroupQuant
from .search import LEAST, Floats, Levels

# Share of the mean of H's diagonal that is added to it: inputs that the text hardly has are not
# trusted, and H has full rank.
DAMPING = 0.01
_ROWS = 2048  # rows that are encoded at once; the errors of a block stay in the caches
VERSION = 1  # of the algorithm; the hash of a conversion covers it


class Feedback:
    """How errors of columns are passed on, for one layer's inputs.

    Memory while it is made: four times the bytes of `products` in float64; afterwards a float32
    matrix of its shape.

    Args:
        products: sum of x^T x over the inputs, [columns, columns].
    """

    def __init__(self, products: NDArray[np.float32]) -> None:
        damped = products[::-1, ::-1].astype(np.float64)
        diagonal = np.einsum("ii->i", damped)
        mean = float(diagonal.mean())
        # A layer whose inputs are all zero has no preferences.
        diagonal += DAMPING * mean if mean > 0 else 1.0
        factor = np.linalg.cholesky(damped)[::-1, ::-1]  # upper triangular: the order is reversed
        del damped
        own = factor.diagonal()
        self.importance: Floats = (own**2 / (own**2).mean()).astype(np.float32)
        self.ratios: Floats = np.ascontiguousarray(factor / own, np.float32)

    def encode(self, scheme: GroupQuant, w: Floats) -> dict[str, NDArray[Any]]:
        """Encode rows w float32 [rows, columns]; returns what `scheme.encode` does.

        Rows are independent of each other. The scale of a group with an infinity or NaN is not
        finite.
        """
        rows, columns = w.shape
        groups = -(-columns // scheme.group)
        words = np.empty((rows, groups * scheme.group // scheme.per_word), np.uint32)
        scales = np.empty((rows, groups), scheme.float_dtype)
        for start in range(0, rows, _ROWS):
            block = slice(start, start + _ROWS)
            q, scales[block] = self._block(scheme, np.ascontiguousarray(w[block].T))
            words[block] = _packed(q, scheme)
        return {"q_weight": words, "q_scale": scales}

    def _block(self, scheme: GroupQuant, w: Floats) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Encode w [columns, n] -> q uint8 [n, padded columns], scales [n, groups]."""
        columns, n = w.shape
        groups = -(-columns // scheme.group)
        q = np.zeros((groups * scheme.group, n), np.uint8)
        scales = np.empty((groups, n), scheme.float_dtype)
        errors = np.empty_like(w)
        for g in range(groups):
            first, stop = g * scheme.group, min((g + 1) * scheme.group, columns)
            wanted = w[first:stop] + self.ratios[:first, first:stop].T @ errors[:first]
            found = weighted_scales(wanted, self.importance[first:stop], scheme.levels)
            scales[g] = scheme.held(found)
            scale = scales[g].astype(np.float32)
            divisor = np.where(scale == 0, np.float32(np.inf), scale)
            with np.errstate(invalid="ignore"):  # the caller detects the non-finite scale
                for j in range(first, stop):
                    aim = wanted[j - first]
                    if j > first:
                        aim = aim + self.ratios[first:j, j] @ errors[first:j]
                    level = np.rint(aim / divisor)
                    np.clip(level, scheme.levels.least, scheme.levels.most, out=level)
                    errors[j] = w[j] - level * scale
                    q[j] = level + scheme.zero
        return np.ascontiguousarray(q.T), np.ascontiguousarray(scales.T)


def weighted_scales(w: Floats, importance: Floats, levels: Levels) -> Floats:
    """Return scales float32 [n] for groups w [columns, n] whose columns differ in importance.

    As `search.best_scales`, with the error sum h (w - q s)^2 for the importance h [columns]. The
    scale of a group with an infinity or NaN is infinite.
    """
    high, low = w.max(0), w.min(0)
    largest = np.where(high >= -low, high, low)
    finite = np.isfinite(largest)
    some = finite & (np.abs(largest) >= LEAST)
    largest = np.where(some, largest, np.float32(1))
    unit = np.where(some, w, np.float32(0)) / largest
    best = np.zeros(w.shape[1], np.float32)
    ratio = np.zeros_like(best)
    for k in levels.tried:
        q = np.clip(np.rint(unit * np.float32(k)), levels.least, levels.most)
        a = importance @ (unit * q)
        b = importance @ (q * q)
        known = b > 0  # an unimportant column alone may round to something else than 0
        found = np.divide(a * a, b, out=np.zeros_like(a), where=known)
        better = found > best
        np.copyto(best, found, where=better)
        np.copyto(ratio, np.divide(a, b, out=np.zeros_like(a), where=known), where=better)
    return np.where(finite, largest * ratio, np.float32(np.inf))


def _packed(q: NDArray[np.uint8], scheme: GroupQuant) -> NDArray[np.uint32]:
    """Pack q [n, columns] into words [n, columns / per_word], the first in the lowest bits."""
    shifts = np.arange(scheme.per_word, dtype=np.uint32) * np.uint32(scheme.bits)
    parts = q.reshape(len(q), -1, scheme.per_word).astype(np.uint32) << shifts
    words: NDArray[np.uint32] = np.bitwise_or.reduce(parts, axis=-1)
    return words
