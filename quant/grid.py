"""What weights are rounded to: integers, and for each group a scale and in some schemes a minimum.

`Grid.scales` finds the scales of a block of columns as they are stored. With them, columns are
rounded at once (`rounded`), or one after another (`feedback.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wherry.base.parallel import mapped

from .search import Floats
from .trellis.paths import VALUES, GroupFeedback, best_path

Integers = NDArray[np.uint8]
Scalar = TypeVar("Scalar", bound=np.generic)
_AT_ONCE = 1 << 18  # weights that a thread encodes at once; NumPy then costs little a call


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales and minimums of some groups of n rows, as they are stored."""

    scale: Floats  # [groups, n]
    minimum: Floats | None  # [groups, n]; None: the scheme has none
    stored: dict[str, NDArray[Any]]  # arrays [n, ...] by name suffix ("q_scale")

    def units(self, w: Floats, group: int) -> Floats:
        """Return weights w [..., n] of a group in the unit of its scale; 0 where the scale is 0."""
        scale = self.scale[group]
        divisor: Floats = np.where(scale == 0, np.float32(np.inf), scale)
        with np.errstate(invalid="ignore"):  # the caller detects the non-finite scale
            quotient: Floats = (w if self.minimum is None else w - self.minimum[group]) / divisor
        return quotient

    def weights(self, values: Floats, group: int) -> Floats:
        """Return the weights of a group for values [..., n] of its integers."""
        with np.errstate(invalid="ignore"):
            w: Floats = values * self.scale[group]
        return w if self.minimum is None else w + self.minimum[group]


class Grid(Protocol):
    """How a scheme rounds weights."""

    @property
    def group(self) -> int:
        """Return the number of columns that share a scale."""

    @property
    def block(self) -> int:
        """Return the number of columns whose scales are found together: whole groups."""

    @property
    def path_bits(self) -> int:
        """Return the bits of integers whose values depend on those before; 0: they do not."""

    def scales(self, w: Floats, importance: Floats | None = None) -> Scales:
        """Find the scales of the weights w [columns, n] of a block, which may be cut.

        A scale of a row with an infinity or NaN is not finite.

        Args:
            w: the weights; without `importance` whole groups.
            importance: weights [columns] of the squared errors; None: all count alike.
        """

    def nearest(self, units: Floats) -> Integers:
        """Return the integers as they are stored whose values are nearest to `units`."""

    def values(self, q: Integers) -> Floats:
        """Return the values of stored integers, in the unit of the scale."""

    def fields(self, q: Integers) -> dict[str, NDArray[Any]]:
        """Return the arrays that store integers q [n, columns] by name suffix."""


def round_group(
    grid: Grid,
    w: Floats,
    scales: Scales,
    group: int,
    importance: Floats,
    feedback: GroupFeedback,
) -> tuple[Integers, Floats]:
    """Round the columns w [columns, n] of a group: the integers and the weights that they are.

    Args:
        grid: what they are rounded to.
        w: the weights, with what makes up for the errors before the group.
        scales: the scales.
        group: the index of the group in them.
        importance: weights [columns] of the squared errors.
        feedback: how errors are passed on within the group.
    """
    if grid.path_bits:
        path = best_path(w, scales.scale[group], importance, grid.path_bits, feedback)
        return _lowest(path, grid.path_bits), scales.weights(VALUES[path], group)
    q, decoded = np.empty(w.shape, np.uint8), np.empty_like(w)
    errors = np.empty_like(w)
    for j, aim in enumerate(w):
        target = aim + feedback.ratios[:j, j] @ errors[:j] if j else aim
        q[j] = grid.nearest(scales.units(target, group))
        decoded[j] = scales.weights(grid.values(q[j]), group)
        errors[j] = feedback.w[j] - decoded[j]
    return q, decoded


def _integers(grid: Grid, w: Floats, scales: Scales) -> Integers:
    """Return the integers of the columns w [columns, n] of a block of whole groups."""
    groups = w.reshape(-1, grid.group, w.shape[1])
    if grid.path_bits:
        apart = groups.swapaxes(0, 1).reshape(grid.group, -1)
        same = np.ones(grid.group, np.float32)
        path = best_path(apart, scales.scale.reshape(-1), same, grid.path_bits)
        q = _lowest(path, grid.path_bits).reshape(grid.group, len(groups), -1).swapaxes(0, 1)
        return q.reshape(w.shape)
    q = np.empty(groups.shape, np.uint8)
    for g, own in enumerate(groups):
        q[g] = grid.nearest(scales.units(own, g))
    return q.reshape(w.shape)


def _lowest(windows: Integers, bits: int) -> Integers:
    """Return the integers that windows end with."""
    return windows & np.uint8(2**bits - 1)


def rounded(grid: Grid, w: Floats) -> dict[str, NDArray[Any]]:
    """Encode rows w [n, columns]; return the stored arrays by name suffix."""
    step = max(1, _AT_ONCE // w.shape[1])
    parts = mapped(lambda i: _rows(grid, w[i : i + step]), range(0, len(w), step))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _rows(grid: Grid, w: Floats) -> dict[str, NDArray[Any]]:
    """Encode rows w [n, columns]: whole blocks as rows of their own, then the last one if cut."""
    n, columns = w.shape
    full = columns // grid.block * grid.block
    q = np.empty(w.shape, np.uint8)
    block_scales: list[dict[str, NDArray[Any]]] = []
    for part in (slice(0, full), slice(full, columns)):
        if part.start == part.stop:
            continue
        length = min(grid.block, part.stop - part.start)
        integers, scales = _block(grid, w[:, part].reshape(-1, length))
        q[:, part] = integers.reshape(n, -1)
        block_scales.append({name: array.reshape(n, -1) for name, array in scales.items()})
    return stored(grid, q, block_scales)


def stored(
    grid: Grid, q: Integers, scales: Sequence[Mapping[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of rows with integers q [n, columns] and the scales of their blocks."""
    joined = {name: np.concatenate([each[name] for each in scales], axis=1) for name in scales[0]}
    return grid.fields(q) | joined


def _block(grid: Grid, w: Floats) -> tuple[Integers, dict[str, NDArray[Any]]]:
    """Round rows w [n, columns] of a block: integers [n, columns], and the scales' arrays."""
    own = w.shape[1]
    columns = np.ascontiguousarray(padded(w, grid.group).T)
    scales = grid.scales(columns)
    return np.ascontiguousarray(_integers(grid, columns, scales)[:own].T), scales.stored


def padded(x: NDArray[Scalar], multiple: int) -> NDArray[Scalar]:
    """Return rows x [n, columns] with zeros up to a multiple of columns."""
    spare = -x.shape[1] % multiple
    return np.pad(x, ((0, 0), (0, spare))) if spare else x


def words(fields: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """Pack unsigned fields [rows, n] into words [rows, ceil(n * bits / 32)], lowest first."""
    narrow = np.ascontiguousarray(padded(fields, 32 // bits), np.uint8)
    if bits < 8:  # to whole bytes first: fewer numbers to shift
        apart = narrow.reshape(-1, 8 // bits)
        narrow = apart[:, 0].copy()
        for i in range(1, 8 // bits):
            narrow |= apart[:, i] << np.uint8(i * bits)
    packed: NDArray[np.uint32] = narrow.view("<u4").reshape(len(fields), -1).astype(np.uint32)
    return packed
