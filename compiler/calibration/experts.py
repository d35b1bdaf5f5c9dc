"""Which inputs each expert has.

An expert computes the rows that the router sends to it. Those of the float model and those that
encoded weights have computed are routed apart, so an expert may have different rows in the two. In
latent attention the matrices of heads are experts that have every row.

An expert may have fewer rows than columns, or none. What its Hessian does not know is left to the
damping; to add the Hessian of the layer's other rows did not change the results
(docs/quantization.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .program import Floats, Ids

Indexes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slots:
    """Rows, and the experts that compute each: slot i * k + j is the j-th expert of row i."""

    x: Floats  # [n, in], or [n * k, in] if each slot has inputs of its own
    rows: Indexes  # row of x of each slot
    experts: Indexes  # expert of each slot
    keys: Indexes  # row and expert of each slot as one number, in ascending order

    @classmethod
    def halves(cls, x: Floats, ids: Ids, count: int) -> tuple[Slots, Slots]:
        """Split the inputs of `count` experts into those of the float model, and the others.

        Without `ids` slot i has expert i % count.
        """
        if ids is None:
            ids = np.tile(np.arange(count, dtype=np.int32), (len(x) // count, 1))
        pairs = zip(np.split(x, 2), np.split(ids, 2), strict=True)
        exact, own = (cls._of(half, chosen, count) for half, chosen in pairs)
        return exact, own

    @classmethod
    def _of(cls, x: Floats, ids: NDArray[np.int32], count: int) -> Slots:
        n, k = ids.shape
        tokens = np.repeat(np.arange(n), k)
        rows = tokens if len(x) == n else np.arange(n * k)
        experts = ids.reshape(-1).astype(np.int64)
        return cls(x, rows, experts, tokens * count + experts)

    def of(self, expert: int) -> Indexes:
        """Return the slots of an expert."""
        return np.flatnonzero(self.experts == expert)

    def inputs(self, slots: Indexes) -> Floats:
        """Return the inputs of some slots [len(slots), in]."""
        return self.x[self.rows[slots]]

    def like(self, other: Slots, slots: Indexes) -> Floats:
        """Return what is here the input of another's slots; where there is none, the other's."""
        if len(self.x) < len(self.rows):  # a row's slots have the same inputs
            return self.x[other.rows[slots]]
        at = np.minimum(np.searchsorted(self.keys, other.keys[slots]), len(self.keys) - 1)
        same = self.keys[at] == other.keys[slots]
        return np.where(same[:, None], self.inputs(at), other.inputs(slots))
