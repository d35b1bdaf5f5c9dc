"""Encodes matrices with error feedback, in the layout of any scheme that has a grid.

A layer computes x w^T. With the inputs x of a calibration text, H = sum x^T x, the error of its
results after an error e = w - w' of a row of weights is e H e^T. Rounding each weight to its
nearest level ignores that inputs are correlated. Error feedback rounds the columns one after
another, and adds to each column what makes up for the errors of the columns before it, as GPTQ does
(Frantar et al., 2022, https://arxiv.org/abs/2210.17323).

With H = V V^T, V upper triangular, e H e^T is the sum over j of

    (V_jj (e_j + sum over k < j of R_kj e_k))^2,     R_kj = V_kj / V_jj

so column j is best rounded from w_j + sum R_kj e_k, and an error in it counts V_jj^2. The scales of
a block are searched with these weights when its first column is reached. This is GPTQ without the
inverse of H.

The inputs x of a layer after encoded layers are not those that the float model has there, x + d.
The weights that are encoded are therefore w + w S / 2, where S = (sum d^T x) H^-1 and x (w + w S)^T
is the best approximation of (x + d) w^T. This is the idea of GPTAQ (Li et al., 2025,
https://arxiv.org/abs/2504.02692), applied before the rounding. The whole of S would also fit
what the text has by chance.

Results depend on the last bits of matrix products, so they may differ between machines, unlike
those of `Encoder.encode`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .grid import Grid, Scales, round_group, stored
from .search import Floats
from .trellis.paths import GroupFeedback

# Share of the mean of H's diagonal that is added to it: inputs that the text hardly has are not
# trusted, and H has full rank.
DAMPING = 0.01
# The same where S is computed, and how much of S is used; docs/quantization.md has measurements.
_CORRECTION_DAMPING = 0.1
_CORRECTION = 0.5
PAIR_BYTES = 48  # memory for a pair of columns
_ROWS = 2048  # rows that are encoded at once; the errors of a block stay in the caches
VERSION = 2  # of the algorithm; the hash of a conversion covers it


class Feedback:
    """How errors of columns are passed on, for one layer's inputs.

    Memory: at most `PAIR_BYTES` for each pair of columns.

    Args:
        x: the inputs, [n, columns].
        exact: the inputs in the float model, [n, columns]; None: the same.
        damping: share of the mean of the diagonal of x^T x that is added to it.
    """

    def __init__(self, x: Floats, exact: Floats | None = None, damping: float = DAMPING) -> None:
        products = (x.T @ x).astype(np.float64)
        diagonal = np.einsum("ii->i", products)  # a view: both dampings are added in place
        mean = float(diagonal.mean())
        self._missing: Floats | None = None  # sum d^T x
        if exact is not None and mean > 0:
            self._missing = ((exact - x).T @ x).astype(np.float32)
            self._products = products.copy()
            self._products[np.diag_indices(len(products))] += _CORRECTION_DAMPING * mean
        # A layer whose inputs are all zero has no preferences.
        diagonal += damping * mean if mean > 0 else 1.0
        # Upper triangular: the order is reversed.
        factor = np.linalg.cholesky(products[::-1, ::-1])[::-1, ::-1]
        own = factor.diagonal()
        self.importance: Floats = (own**2 / (own**2).mean()).astype(np.float32)
        self.ratios: Floats = np.ascontiguousarray(factor / own, np.float32)

    def encode(self, grid: Grid, w: Floats) -> dict[str, NDArray[Any]]:
        """Encode rows w float32 [rows, columns]; returns what `Encoder.encode` does.

        Rows are independent of each other. The scale of a group with an infinity or NaN is not
        finite.
        """
        with np.errstate(invalid="ignore", over="ignore"):  # of numbers that are not finite
            targets = self._targets(w)
            parts = [
                self._rows(grid, np.ascontiguousarray(targets[start : start + _ROWS].T))
                for start in range(0, len(w), _ROWS)
            ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _targets(self, w: Floats) -> Floats:
        """Return the weights to encode, w + w S / 2, for rows w [n, columns].

        H is symmetric, so (w S)^T = H^-1 (w sum d^T x)^T; S is only found if rows exceed columns.
        """
        if self._missing is None:
            return w
        if len(w) < w.shape[1]:
            moved = np.linalg.solve(self._products, (w @ self._missing).T).T
        else:
            moved = w @ np.linalg.solve(self._products, self._missing.T).T.astype(np.float32)
        return (w + _CORRECTION * moved).astype(np.float32)

    def _rows(self, grid: Grid, w: Floats) -> dict[str, NDArray[Any]]:
        """Encode the rows that are the columns of w [columns, n]."""
        q = np.empty(w.shape, np.uint8)
        errors = np.empty_like(w)
        block_scales: list[Scales] = []
        for first in range(0, len(w), grid.block):
            stop = min(first + grid.block, len(w))
            targets = w[first:stop] + self.ratios[:first, first:stop].T @ errors[:first]
            scales = grid.scales(targets, self.importance[first:stop])
            block_scales.append(scales)
            for start in range(first, stop, grid.group):
                group, last = (start - first) // grid.group, min(start + grid.group, stop)
                aims = targets[start - first : last - first]
                if start > first:
                    aims = aims + self.ratios[first:start, start:last].T @ errors[first:start]
                own = GroupFeedback(w[start:last], self.ratios[start:last, start:last])
                importance = self.importance[start:last]
                q[start:last], decoded = round_group(grid, aims, scales, group, importance, own)
                errors[start:last] = own.w - decoded
        return stored(grid, np.ascontiguousarray(q.T), [each.stored for each in block_scales])
