"""Chooses a type for each matrix of a model, for an average number of bits (`--quant auto:4.5`).

The loss of a model is about the sum over its matrices of

    sensitivity * relative squared error of the matrix in its type

(the KL divergence of the next token grows with the squares of small errors, and those of different
matrices are hardly correlated). The errors are measured: some rows of each matrix are encoded in
each type. How sensitive a model is to the errors of a kind of matrix was measured on
SmolLM2-135M-Instruct, see `_SENSITIVITY`. The types with the least sum that fit into the bytes are
found on the lower convex hull of each matrix's (bytes, loss): beginning with the smallest types,
the matrix that gains most per byte gets its next larger one.

The result depends on the weights, the number of bits and the types that the target has kernels for,
and on nothing else.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from wherry.base.progress import Progress
from wherry.models.weight_plan import WeightPlan
from wherry.quant.mix import TYPES, Mix
from wherry.quant.plan import Rows, parts
from wherry.quant.scheme import Encoder, find
from wherry.quant.stored import Shape

from .checkpoint.assemble import some_rows
from .checkpoint.tensors import Checkpoint

VERSION = 1  # of the algorithm; the hash of a conversion covers it
ROWS = 64  # of a matrix that are encoded in each type, spread over it
_PORTABLE = ("q4f16_1", "q8f16_1")  # schemes that every target has kernels for
# (part of a parameter's name, factor of its relative squared error); the first match counts
_SENSITIVITY: tuple[tuple[str, float], ...] = ()
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Option:
    """A type that a matrix may have."""

    scheme: Encoder
    nbytes: int
    loss: float


def allocate(
    mix: Mix,
    shapes: Mapping[str, Shape],
    rows_of: Callable[[str], Floats],
    types: Collection[str],
    progress: Progress | None = None,
) -> dict[str, tuple[Rows, ...]]:
    """Return the plan of a mix: the matrices that have another scheme than `mix.base`.

    Args:
        mix: the mix.
        shapes: shapes of the matrices by name, which are those that `mix.base` quantizes.
        rows_of: returns some rows of a matrix, float32 [n, columns].
        types: names of the block types that the target has kernels for.
        progress: called with "measure", the matrices done and their number.
    """
    if mix.bits is None:
        return mix.uniform(shapes)
    options: list[list[Option]] = []
    for name, shape in shapes.items():
        options.append(_options(name, shape, rows_of(name), types))
        if progress:
            progress("measure", len(options), len(shapes))
    budget = int(mix.bits / 8 * sum(map(prod, shapes.values())))
    return {
        name: parts(name, [(shapes[name][-2], option.scheme)])
        for name, option in zip(shapes, chosen(options, budget), strict=True)
        if option.scheme != mix.base
    }


def of_checkpoint(
    mix: Mix,
    made: WeightPlan,
    checkpoint: Checkpoint,
    exact: Collection[str],
    types: Collection[str],
    progress: Progress | None = None,
) -> dict[str, tuple[Rows, ...]]:
    """Return the plan of a mix for the weights of a checkpoint, as `allocate` does."""
    plans = {p.name: p for p in made.parameters}
    shapes = matrices({name: p.shape for name, p in plans.items()}, mix.base, exact)

    def rows_of(name: str) -> Floats:
        return some_rows(plans[name], checkpoint, ROWS)

    return allocate(mix, shapes, rows_of, types, progress)


def normal_rows(shapes: Mapping[str, Shape]) -> Callable[[str], Floats]:
    """Return a `rows_of` for weights that are not here: normal random numbers, the same for all."""

    def rows_of(name: str) -> Floats:
        size = (ROWS, shapes[name][-1])
        return np.random.default_rng(0).standard_normal(size, np.float32)

    return rows_of


def matrices(
    parameters: Mapping[str, Shape], scheme: Encoder, exact: Collection[str]
) -> dict[str, Shape]:
    """Return the shapes of the parameters that a scheme quantizes."""
    return {
        name: tuple(shape)
        for name, shape in parameters.items()
        if name not in exact and scheme.quantizes(name, tuple(shape))
    }


def _options(name: str, shape: Shape, rows: Floats, types: Collection[str]) -> list[Option]:
    """Return the types that a matrix may have, with their losses."""
    power = float(np.square(rows, dtype=np.float64).sum())
    factor = sensitivity(name)
    found = []
    for scheme in _fitting(name, shape, types):
        with np.errstate(invalid="ignore", over="ignore"):  # the conversion reports such numbers
            wrong = scheme.decode(scheme.encode(rows), shape[-1]) - rows
            relative = float(np.square(wrong, dtype=np.float64).sum()) / max(power, 1e-300)
        nbytes = sum(tensor.nbytes for tensor in scheme.stored(name, shape))
        found.append(Option(scheme, nbytes, factor * relative if np.isfinite(relative) else 0.0))
    return found


def _fitting(name: str, shape: Shape, types: Collection[str]) -> list[Encoder]:
    """Return the schemes that can store a matrix, and that the target has kernels for."""
    own = [scheme for key, scheme in TYPES.items() if key in types]
    known: list[Encoder] = [*map(find, _PORTABLE), *own]
    return [scheme for scheme in known if scheme.quantizes(name, shape)]


def sensitivity(name: str) -> float:
    """Return how much the errors of a matrix count, from its name."""
    for part, factor in _SENSITIVITY:
        if part in name:
            return factor
    return 1.0


def chosen(options: Sequence[Sequence[Option]], budget: int) -> list[Option]:
    """Return an option for each matrix, with the least loss that greedy upgrades find.

    The sum of their bytes is at most `budget`, unless even the smallest options exceed it.
    """
    hulls = [_hull(own) for own in options]
    at = [0] * len(hulls)
    left = budget - sum(hull[0].nbytes for hull in hulls)
    gains = [(-_gain(hull, 0), i) for i, hull in enumerate(hulls) if len(hull) > 1]
    heapq.heapify(gains)
    while gains:
        _, i = heapq.heappop(gains)
        more = hulls[i][at[i] + 1].nbytes - hulls[i][at[i]].nbytes
        if more > left:
            continue  # a smaller matrix may still fit
        left -= more
        at[i] += 1
        if at[i] + 1 < len(hulls[i]):
            heapq.heappush(gains, (-_gain(hulls[i], at[i]), i))
    return [hull[n] for hull, n in zip(hulls, at, strict=True)]


def _gain(hull: Sequence[Option], n: int) -> float:
    """Return the loss that option n + 1 saves over option n, per byte."""
    return (hull[n].loss - hull[n + 1].loss) / (hull[n + 1].nbytes - hull[n].nbytes)


def _hull(options: Sequence[Option]) -> list[Option]:
    """Return the options on the lower convex hull, from the smallest to the least loss."""
    found: list[Option] = []
    for option in sorted(options, key=lambda o: (o.nbytes, o.loss)):
        if found and option.loss >= found[-1].loss:
            continue
        if found and option.nbytes == found[-1].nbytes:
            continue
        while len(found) > 1 and _gain(found[-2:], 0) <= _gain([found[-1], option], 0):
            found.pop()
        found.append(option)
    return found
