"""Searches trellis-coded weights: integers whose values depend on the integers before them.

`wherry.ops.blocks` has the values of windows, an integer and those before it. A state is what two
windows share. The search keeps the best path into each state, with Viterbi's algorithm, which is
exact for a given scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import TRELLIS, WINDOW_BITS

from .search import Floats, best_ratios, folded, scaled, weighted

_VALUES = np.array(TRELLIS, np.float32)
_ROOT_MEAN_SQUARE = float(np.sqrt(np.square(_VALUES).mean()))
# Scales that the search tries: multiples of the one with which the weights' mean square is that of
# the values, and of the one with which the largest weight is the largest value.
_OF_MEAN = (0.86, 1.0, 1.16)
_OF_LARGEST = (0.8, 1.0)
_AT_ONCE = 512  # groups of which paths are searched at once: the costs stay in the caches
Integers = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Feedback:
    """How the errors of a group's columns are passed on within it; see `feedback.py`.

    Args:
        w: the weights themselves [group, n]; the search has them with what makes up for the errors
            before the group.
        ratios: R of the group, [group, group].
    """

    w: Floats
    ratios: Floats


def windows(q: NDArray[np.integer], bits: int, group: int) -> NDArray[np.intp]:
    """Return the windows of integers q [..., columns], of which each group begins anew."""
    found = q.astype(np.intp)
    for before in range(1, WINDOW_BITS // bits):
        moved = np.zeros_like(found)
        moved[..., before:] = q[..., :-before]
        moved[..., np.arange(q.shape[-1]) % group < before] = 0
        found |= moved << before * bits
    return found


def best_path(
    w: Floats, scale: Floats, importance: Floats, bits: int, feedback: Feedback | None = None
) -> tuple[Integers, Floats]:
    """Return the integers of a group with the least error, and their values.

    With feedback, each path has errors of its own, and adds to a column what makes up for them.

    Args:
        w: the weights, [group, n].
        scale: the scales, [n].
        importance: weights of the squared errors, [group].
        bits: of an integer.
        feedback: how errors are passed on; None: they are not.
    """
    path = np.empty(w.shape, np.uint8)
    with np.errstate(invalid="ignore", over="ignore"):  # of scales that are not finite
        for start in range(0, w.shape[1], _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            own = Feedback(feedback.w[:, part], feedback.ratios) if feedback else None
            path[:, part] = _path(w[:, part], scale[part], importance, bits, own)
    return path & np.uint8(2**bits - 1), _VALUES[path]


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


def _path(
    w: Floats, scale: Floats, importance: Floats, bits: int, feedback: Feedback | None
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
            made = feedback.ratios[:j, j] @ errors[:j].reshape(j, -1)
            aim = aim + made.reshape(states, 1, n)
        np.subtract(values, aim, out=ways)
        np.square(ways, out=ways)
        ways *= importance[j]
        search.step(j, ways)
        if feedback:
            origin = (search.came[j] >> bits).astype(np.intp)
            errors[:j] = np.take_along_axis(errors[:j], origin[None], 1)
            errors[j] = feedback.w[j] - _VALUES[search.came[j]] * scale
    return search.path()


def best_trellis_scales(w: Floats, importance: Floats | None, bits: int) -> Floats:
    """Return the best scales float32 [n] of groups w [group, n], as `search.best_scales`.

    Args:
        w: the weights; without `importance` the number of rows is a power of two.
        importance: weights [group] of the squared errors; None: all count alike.
        bits: of an integer.
    """
    total = folded if importance is None else weighted(importance)
    each = np.ones(len(w), np.float32) if importance is None else importance

    def ratios(unit: Floats) -> Floats:
        mean = np.sqrt(total(np.square(unit)) / each.sum()).astype(np.float32)
        tried = [mean * np.float32(k / _ROOT_MEAN_SQUARE) for k in _OF_MEAN]
        tried += [np.full_like(mean, k / _VALUES.max()) for k in _OF_LARGEST]
        ways = (best_path(unit, scale, each, bits)[1] for scale in tried)
        return best_ratios(ways, unit, total)

    return scaled(w, ratios)
