"""Chooses a type for each matrix of a model, for an average number of bits (`--quant auto:4.5`).

The loss of a model is about the sum over its matrices of

    sensitivity * (e + 100 e^2),  e: relative squared error of the matrix in its type

(the KL divergence of the next token grows with the squares of small errors, and those of different
matrices are hardly correlated; large errors count more, because a mix with many 2-bit matrices is
worse than one of 3 bits alone). The errors are measured: some rows of each matrix are encoded in
each type. How sensitive models are to the errors of a kind of matrix was measured once, see
`_SENSITIVITY`. The types with the least sum that fit into the bytes are found on the lower convex
hull of each matrix's (bytes, loss): beginning with the smallest types, the matrix that gains most
per byte gets its next larger one.

A parameter that joins matrices of very different sensitivity, as that of queries, keys and values
does, has a type for each part. The result depends on the weights, the number of bits and the types
that the target has kernels for, and on nothing else.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from wherry.base.progress import Progress
from wherry.models.weights.plan import ParameterPlan, WeightPlan
from wherry.quant.mix import Mix
from wherry.quant.plan import SchemeRows, parts
from wherry.quant.scheme import TYPES, Encoder, Scheme, find
from wherry.quant.stored import Shape

from .checkpoint.assemble import some_rows
from .checkpoint.tensors import Checkpoint

VERSION = 2  # of the algorithm; the hash of a conversion covers it
ROWS = 64  # of a matrix that are encoded in each type, spread over it
_PORTABLE = ("q4f16_1", "q8f16_1")  # schemes that every target has kernels for
# (part of a name, KL in 1e-4 nats); the first match counts. The KL is that of SmolLM2-135M-Instruct
# after random errors, with a relative squared error of 0.006, in all matrices of this kind.
_SENSITIVITY = (
    ("qkv_proj", 828.0),
    ("gate_up_proj", 498.0),
    ("q_proj", 111.0),
    ("k_proj", 83.0),
    ("v_proj", 634.0),
    ("o_proj", 95.0),
    ("gate_proj", 164.0),
    ("up_proj", 334.0),
    ("down_proj", 711.0),
    ("lm_head", 564.0),
    ("embed", 95.0),
)
_TIED = 659.0  # of an embedding that is the LM head, too
# How much errors of a lookup count, relative to those of the LM head, where one matrix is both.
TIED_SHARE = 95.0 / 564.0
_OTHERS = 200.0  # of a matrix with another name
_LARGE = 100.0  # what the square of an error counts
# Parts of a parameter have types of their own if a weight of one counts this many times as much.
_APART = 4.0
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AllocationUnit:
    """Rows that have one type: a parameter's, or those of some of the matrices that it joins."""

    name: str  # of the parameter
    first: int  # row
    shape: Shape
    factor: float  # sensitivity, divided by the number of matrices of this kind


@dataclass(frozen=True, slots=True)
class Option:
    """A type that a unit may have."""

    scheme: Encoder
    nbytes: int
    loss: float


def allocate(
    mix: Mix,
    units: Sequence[AllocationUnit],
    rows_of: Callable[[AllocationUnit], Floats],
    types: Collection[str],
    progress: Progress | None = None,
) -> dict[str, tuple[SchemeRows, ...]]:
    """Return the plan of a mix: the parameters that are not in `mix.base` alone.

    Args:
        mix: the mix, which has a number of bits.
        units: what may have a type of its own.
        rows_of: returns some rows of a unit, float32 [n, columns].
        types: names of the block types that the target has kernels for.
        progress: called with "measure", the units done and their number.
    """
    assert mix.bits is not None, "a mix of one type is uniform"
    options: list[list[Option]] = []
    for unit in units:
        options.append(_options(unit, rows_of(unit), types))
        if progress:
            progress("measure", len(options), len(units))
    budget = int(mix.bits / 8 * sum(prod(unit.shape) for unit in units))
    by_name: dict[str, list[tuple[int, Scheme]]] = {}
    for unit, option in zip(units, chosen(options, budget), strict=True):
        rows = by_name.setdefault(unit.name, [])
        before = rows.pop()[0] if rows and rows[-1][1] == option.scheme else 0
        rows.append((before + unit.shape[-2], option.scheme))
    return {
        name: parts(name, rows)
        for name, rows in by_name.items()
        if len(rows) > 1 or rows[0][1] != mix.base
    }


def of_checkpoint(
    mix: Mix,
    weight_plan: WeightPlan,
    checkpoint: Checkpoint,
    exact: Collection[str],
    types: Collection[str],
    progress: Progress | None = None,
) -> dict[str, tuple[SchemeRows, ...]]:
    """Return the plan of a mix for the weights of a checkpoint.

    Args:
        mix: the mix.
        weight_plan: the plan of the model's parameters.
        checkpoint: the source of their weights.
        exact: names of parameters that stay float32.
        types: as in `allocate`.
        progress: as in `allocate`.
    """
    plans = {p.name: p for p in weight_plan.parameters}
    shapes = {name: p.shape for name, p in plans.items()}
    if mix.bits is None:
        return mix.uniform(matrices(shapes, mix.base, exact))

    def rows_of(unit: AllocationUnit) -> Floats:
        rows = (unit.first, unit.first + unit.shape[0])
        return some_rows(plans[unit.name], checkpoint, ROWS, rows if len(unit.shape) == 2 else None)

    units = units_of(matrices(shapes, mix.base, exact), plans)
    return allocate(mix, units, rows_of, types, progress)


def normal_rows(unit: AllocationUnit) -> Floats:
    """Return rows of normal random numbers, instead of those of weights that are not here."""
    return np.random.default_rng(0).standard_normal((ROWS, unit.shape[-1]), np.float32)


def matrices(
    shapes: Mapping[str, Shape], scheme: Encoder, exact: Collection[str]
) -> dict[str, Shape]:
    """Return the shapes of the parameters that a scheme quantizes."""
    return {
        name: tuple(shape)
        for name, shape in shapes.items()
        if name not in exact and scheme.quantizes(name, tuple(shape))
    }


def units_of(
    shapes: Mapping[str, Shape], plans: Mapping[str, ParameterPlan] | None = None
) -> list[AllocationUnit]:
    """Return what may have types of its own in the matrices with these shapes.

    Without `plans`, which tell the matrices that a parameter joins, it is each parameter.
    """
    tied = not any("lm_head" in name for name in shapes)
    pieces: list[tuple[str, int, Shape, list[tuple[str, float]]]] = []
    for name, shape in shapes.items():
        joined = _joined(name, shape, plans[name] if plans else None, tied)
        for first, rows, kinds in joined:
            pieces.append((name, first, (*shape[:-2], rows, shape[-1]), kinds))
    count = Counter(kind for *_, kinds in pieces for kind, _ in kinds)
    return [
        AllocationUnit(name, first, shape, sum(factor / count[kind] for kind, factor in kinds))
        for name, first, shape, kinds in pieces
    ]


def _joined(
    name: str, shape: Shape, plan: ParameterPlan | None, tied: bool
) -> list[tuple[int, int, list[tuple[str, float]]]]:
    """Return (first row, rows, kinds) of the units of a parameter."""
    uniform = [(0, shape[-2], [_kind(name, tied)])]
    if plan is None or len(plan.pieces) < 2 or plan.axis or len(shape) != 2 or plan.unpacked:
        return uniform
    runs: list[tuple[int, int, list[tuple[str, float]]]] = []
    for piece in plan.pieces:
        kind, rows = _kind(piece.name, tied), piece.stop - piece.start
        if runs and not _differ(runs[-1], kind[1] / rows):
            first, before, kinds = runs.pop()
            runs.append((first, before + rows, [*kinds, kind]))
        else:
            runs.append((piece.start, rows, [kind]))
    return runs if len(runs) > 1 else uniform


def _differ(unit: tuple[int, int, list[tuple[str, float]]], density: float) -> bool:
    """Return whether a row of a unit and one with a sensitivity differ so much as to be apart."""
    own = sum(factor for _, factor in unit[2]) / unit[1]
    return max(own, density) > _APART * min(own, density)


def _kind(name: str, tied: bool) -> tuple[str, float]:
    """Return the kind of a matrix and the sensitivity of all matrices of this kind."""
    for part, factor in _SENSITIVITY:
        if part in name:
            return part, _TIED if tied and part == "embed" else factor
    return "", _OTHERS


def _options(unit: AllocationUnit, rows: Floats, types: Collection[str]) -> list[Option]:
    """Return the types that a unit may have, with their losses."""
    power = float(np.square(rows, dtype=np.float64).sum())
    options = []
    for scheme in _fitting(unit, types):
        with np.errstate(invalid="ignore", over="ignore"):  # the conversion reports such numbers
            wrong = scheme.decode(scheme.encode(rows), rows.shape[-1]) - rows
            relative = float(np.square(wrong, dtype=np.float64).sum()) / max(power, 1e-300)
        nbytes = sum(tensor.nbytes for tensor in scheme.stored(unit.name, unit.shape))
        loss = unit.factor * (relative + _LARGE * relative**2)
        options.append(Option(scheme, nbytes, loss if np.isfinite(loss) else 0.0))
    return options


def _fitting(unit: AllocationUnit, types: Collection[str]) -> list[Encoder]:
    """Return the schemes that can store a unit, and that the target has kernels for."""
    # not every target that has kernels for a type's linears has them for experts
    own = [s for key, s in TYPES.items() if key in types and len(unit.shape) == 2]
    known: list[Encoder] = [*map(find, _PORTABLE), *own]
    return [scheme for scheme in known if scheme.quantizes(unit.name, unit.shape)]


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
    hull: list[Option] = []
    for option in sorted(options, key=lambda o: (o.nbytes, o.loss)):
        if hull and option.loss >= hull[-1].loss:
            continue
        if hull and option.nbytes == hull[-1].nbytes:
            continue
        while len(hull) > 1 and _gain(hull[-2:], 0) <= _gain([hull[-1], option], 0):
            hull.pop()
        hull.append(option)
    return hull
