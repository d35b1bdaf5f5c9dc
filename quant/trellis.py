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

from .search import LEAST, Floats, best_ratios, scaled, weighted

_VALUES = np.array(TRELLIS, np.float32)
_ROOT_MEAN_SQUARE = float(np.sqrt(np.square(_VALUES).mean()))
# Scales that the search tries: multiples of the one with which the weights' mean square is that of
# the values, and of the one with which the largest weight is the largest value.
_OF_MEAN = (0.86, 1.0, 1.16)
_OF_LARGEST = (0.8, 1.0)
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
    """Return the integers of a group with the least error, and their values times the scale.

    With feedback, each path has errors of its own, and adds to a column what makes up for them.

    Args:
        w: the weights, [group, n].
        scale: the scales, [n].
        importance: weights of the squared errors, [group].
        bits: of an integer.
        feedback: how errors are passed on; None: they are not.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # of scales that are not finite
        return _best_path(w, scale, importance, bits, feedback)


def _best_path(
    w: Floats, scale: Floats, importance: Floats, bits: int, feedback: Feedback | None
) -> tuple[Integers, Floats]:
    (columns, n), branches = w.shape, 2**bits
    states = len(_VALUES) // branches
    values = (_VALUES[:, None] * scale).reshape(states, branches, n)
    cost = np.full((states, n), np.float32(np.inf))
    cost[0] = 0
    came = np.empty((columns, states, n), np.uint8)  # the best window into each state
    errors = np.zeros((columns if feedback else 0, states, n), np.float32)
    first = np.arange(states, dtype=np.uint8)[:, None]
    for j in range(columns):
        aim = w[j]
        if feedback and j:
            made = feedback.ratios[:j, j] @ errors[:j].reshape(j, -1)
            aim = aim + made.reshape(states, 1, n)
        ways = values - aim
        np.square(ways, out=ways)
        ways *= importance[j]
        ways += cost[:, None]
        into = ways.reshape(branches, states, n)  # windows that end alike lead into one state
        best = into.argmin(0).astype(np.uint8)
        at = best[None].astype(np.intp)
        cost = np.take_along_axis(into, at, 0)[0]
        came[j] = best * np.uint8(states) + first
        if feedback:
            origin = (came[j] >> bits).astype(np.intp)
            errors[:j] = np.take_along_axis(errors[:j], origin[None], 1)
            chosen = np.take_along_axis(values.reshape(-1, n), came[j].astype(np.intp), 0)
            errors[j] = feedback.w[j] - chosen
    path = _traced(came, cost.argmin(0), bits)
    return path & np.uint8(branches - 1), _VALUES[path] * scale


def _traced(came: Integers, last: NDArray[np.intp], bits: int) -> Integers:
    """Return the windows [group, n] of the paths that end in states `last` [n]."""
    path = np.empty((len(came), len(last)), np.uint8)
    at = last[None]
    for j in range(len(came) - 1, -1, -1):
        path[j] = np.take_along_axis(came[j], at, 0)[0]
        at = (path[j] >> bits).astype(np.intp)[None]
    return path


def best_trellis_scales(w: Floats, importance: Floats, bits: int) -> Floats:
    """Return the best scales float32 [n] of groups w [group, n], as `search.best_scales`."""
    total = weighted(importance)

    def ratios(unit: Floats) -> Floats:
        mean = np.sqrt(total(np.square(unit)) / importance.sum()).astype(np.float32)
        tried = [mean * np.float32(k / _ROOT_MEAN_SQUARE) for k in _OF_MEAN]
        tried += [np.full_like(mean, k / _VALUES.max()) for k in _OF_LARGEST]
        ways = (
            best_path(unit, scale, importance, bits)[1] / np.maximum(scale, LEAST)
            for scale in tried
        )
        return best_ratios(ways, unit, total)

    return scaled(w, ratios)
