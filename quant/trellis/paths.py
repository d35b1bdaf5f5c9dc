"""Searches trellis-coded weights: integers whose values depend on the integers before them.

`wherry.ops.blocks` has the values of windows, an integer and those before it. A state is what two
windows share. The search keeps the best path into each state, with Viterbi's algorithm, which is
exact for a given scale. `compiled.py` compiles it for this machine's CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import TRELLIS, WINDOW_BITS

from ..search import Floats, folded, scaled, weighted

VALUES = np.array(TRELLIS, np.float32)  # of windows
_ROOT_MEAN_SQUARE = float(np.sqrt(np.square(VALUES).mean()))
# Scales that the search tries: multiples of the one with which the weights' mean square is that of
# the values, and of the one with which the largest weight is the largest value.
_OF_MEAN = (0.86, 1.0, 1.16)
_OF_LARGEST = (0.8, 1.0)
Integers = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class GroupFeedback:
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
    joined = q.astype(np.intp)
    for before in range(1, WINDOW_BITS // bits):
        moved = np.zeros_like(joined)
        moved[..., before:] = q[..., :-before]
        moved[..., np.arange(q.shape[-1]) % group < before] = 0
        joined |= moved << before * bits
    return joined


def best_path(
    w: Floats, scale: Floats, importance: Floats, bits: int, feedback: GroupFeedback | None = None
) -> Integers:
    """Return the windows [group, n] of the integers of groups with the least error.

    With feedback, each path has errors of its own, and adds to a column what makes up for them.

    Args:
        w: the weights, [group, n].
        scale: the scales, [n].
        importance: weights of the squared errors, [group].
        bits: of an integer.
        feedback: how errors are passed on; None: they are not.
    """
    from .compiled import best_path as search  # only the search needs TVM

    own = (feedback.w, feedback.ratios) if feedback else None
    return search(w, scale, importance, bits, own)


def best_trellis_scales(w: Floats, importance: Floats | None, bits: int) -> Floats:
    """Return the best scales float32 [n] of groups w [group, n], as `search.best_scales`.

    Args:
        w: the weights; without `importance` the number of rows is a power of two.
        importance: weights [group] of the squared errors; None: all count alike.
        bits: of an integer.
    """
    from .compiled import best_ratios  # only the search needs TVM

    total = folded if importance is None else weighted(importance)
    each = np.ones(len(w), np.float32) if importance is None else importance

    def ratios(unit: Floats) -> Floats:
        mean = np.sqrt(total(np.square(unit)) / each.sum()).astype(np.float32)
        tried = [mean * np.float32(k / _ROOT_MEAN_SQUARE) for k in _OF_MEAN]
        tried += [np.full_like(mean, k / max(TRELLIS)) for k in _OF_LARGEST]
        return best_ratios(unit, np.stack(tried), each, bits)

    return scaled(w, ratios)
