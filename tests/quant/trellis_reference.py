"""The search of paths through a trellis in NumPy, which the compiled one is held to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import TRELLIS
from wherry.quant.search import Floats
from wherry.quant.trellis.paths import GroupFeedback

_VALUES = np.array(TRELLIS, np.float32)
Integers = NDArray[np.uint8]


class _Search:
    """The best paths into each state, column by column."""

    def __init__(self, columns: int, n: int, bits: int) -> None:
        self._bits, self._n = bits, n
        states = len(_VALUES) >> bits
        self.cost = np.full((states, n), np.float32(np.inf))
        self.cost[0] = 0
        self.came = np.empty((columns, states, n), np.uint8)  # the best window into each state
        self._first = np.arange(states, dtype=np.uint8)[:, None]
        self._numbers = np.arange(2**bits, dtype=np.int32)[:, None, None]

    def step(self, j: int, ways: Floats) -> None:
        """Extend the paths by column j, with errors `ways` [states, branches, n]; overwrites them.

        The lowest bits of an error become the window's upper ones, so that the least has its own
        with it.
        """
        ways += self.cost[:, None]
        states, branches = ways.shape[:2]
        mask = np.int32(branches - 1)
        # windows that end alike lead into one state
        marked = ways.reshape(branches, states, self._n).view(np.int32)
        marked &= ~mask
        marked |= self._numbers
        least = np.minimum.reduce(marked, axis=0)
        self.cost = (least & ~mask).view(np.float32)
        self.came[j] = (least & mask).astype(np.uint8) * np.uint8(states) + self._first

    def path(self) -> Integers:
        """Return the windows [columns, n] of the best path."""
        path = np.empty((len(self.came), self._n), np.uint8)
        at, every = self.cost.argmin(0), np.arange(self._n)
        for j in range(len(path) - 1, -1, -1):
            path[j] = self.came[j][at, every]
            at = path[j] >> self._bits
        return path


def best_path(
    w: Floats, scale: Floats, importance: Floats, bits: int, feedback: GroupFeedback | None = None
) -> Integers:
    """Return the windows [group, n] of the best paths."""
    (columns, n), branches = w.shape, 2**bits
    states = len(_VALUES) // branches
    values = (_VALUES[:, None] * scale).reshape(states, branches, n)
    search = _Search(columns, n, bits)
    errors = np.zeros((columns if feedback else 0, states, n), np.float32)
    ways = np.empty_like(values)
    for j in range(columns):
        aim = w[j]
        if feedback and j:
            correction = feedback.ratios[:j, j] @ errors[:j].reshape(j, -1)
            aim = aim + correction.reshape(states, 1, n)
        np.subtract(values, aim, out=ways)
        np.square(ways, out=ways)
        ways *= importance[j]
        search.step(j, ways)
        if feedback:
            origin = (search.came[j] >> bits).astype(np.intp)
            errors[:j] = np.take_along_axis(errors[:j], origin[None], 1)
            errors[j] = feedback.w[j] - _VALUES[search.came[j]] * scale
    return search.path()
