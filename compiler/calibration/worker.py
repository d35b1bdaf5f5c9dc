"""Encodes weights one after another, each with its inputs, and computes its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.base.progress import Progress
from wherry.models.weights.plan import ParameterPlan
from wherry.quant.blocks import BlockQuant
from wherry.quant.feedback import Feedback
from wherry.quant.grid import Grid
from wherry.quant.group import GroupQuant
from wherry.quant.plan import SchemeRows
from wherry.quant.scheme import EXACT, Encoder, Scheme, store

from ..allocation import TIED_SHARE
from ..checkpoint.tensors import Checkpoint
from ..encoding import Encoding
from .encoded import Encoded, Stored
from .experts import Slots
from .program import Floats, Ids


@dataclass(slots=True)
class Worker:
    """Encodes a weight when its inputs are known, and computes its results."""

    plans: Mapping[str, ParameterPlan]
    checkpoint: Checkpoint
    encoding: Encoding
    lookups: Encoder  # the scheme of the tensors that `stored` returns
    encoded: Encoded
    progress: Progress | None
    names: list[str]
    done: dict[str, int] = field(default_factory=dict)  # weights of each name
    last: tuple[str, dict[str, NDArray[Any]]] = ("", {})  # the last parameter that `stored` read

    def _parts(self, name: str) -> tuple[SchemeRows, ...]:
        return self.encoding.parts(name, self.plans[name].shape)

    def linear(self, name: str, x: Floats, ids: Ids) -> Floats:
        """Return the results of a linear, or of experts, for inputs x, as `program.Linear` does.

        The first half are inputs in the float model, for the weight itself; the second are those
        that encoded weights have computed, for the encoded weight.
        """
        if len(self.plans[name].shape) == 3:
            return self._experts(name, x, ids)
        exact, own = np.split(x, 2)
        y = np.empty((len(x), self.plans[name].shape[0]), np.float32)
        exact_y, own_y = np.split(y, 2)
        done = 0
        for _, rows in self.encoding.rows(self.plans[name], self.checkpoint):
            exact_y[:, done : done + len(rows)] = exact @ rows.T
            done += len(rows)
        arrays = self._encode(name, lambda: Feedback(own, exact))
        done = 0
        for part in self._parts(name):
            stored = _of(part, arrays)
            for start in range(0, part.rows, step := max(1, (1 << 22) // x.shape[1])):
                block = {suffix: array[start : start + step] for suffix, array in stored.items()}
                w = part.scheme.decode(block, x.shape[1])
                own_y[:, done : done + len(w)] = own @ w.T
                done += len(w)
        return y

    def _experts(self, name: str, x: Floats, ids: Ids) -> Floats:
        """Return the results of all slots of the experts, or heads, that the rows have."""
        count, width, columns = self.plans[name].shape
        exact, own = Slots.halves(x, ids, count)
        y = np.empty((len(exact.rows) + len(own.rows), width), np.float32)
        exact_y, own_y = np.split(y, 2)
        (part,) = self._parts(name)  # experts have one scheme
        before = self.encoded.read(name) if self.encoded.has(name) else None
        by_name: dict[str, list[NDArray[Any]]] = {}
        for e, w in enumerate(self._matrices(name)):
            of_exact, of_own = exact.of(e), own.of(e)
            exact_y[of_exact] = exact.inputs(of_exact) @ w.T
            if before:
                stored = {suffix: a[e] for suffix, a in _of(part, before).items()}
            else:
                stored = Feedback(own.inputs(of_own), exact.like(own, of_own)).encode(
                    _grid(part), w
                )
            for suffix, array in stored.items():
                by_name.setdefault(part.name.removesuffix("weight") + suffix, []).append(array)
            own_y[of_own] = own.inputs(of_own) @ part.scheme.decode(stored, columns).T
        if not before:
            self.encoded.write(name, {n: np.stack(arrays) for n, arrays in by_name.items()})
        self._did(name)
        return y

    def _matrices(self, name: str) -> Iterator[Floats]:
        """Yield the matrix [out, in] of each expert."""
        _, width, columns = self.plans[name].shape
        rest = np.empty((0, columns), np.float32)
        for _, rows in self.encoding.rows(self.plans[name], self.checkpoint):
            rest = np.concatenate([rest, rows.reshape(-1, columns)])
            complete = len(rest) // width * width
            yield from rest[:complete].reshape(-1, width, columns)
            rest = rest[complete:]

    def head(self, name: str, x: Floats, *, tied: bool) -> None:
        """Encode the LM head, or the embedding that is `tied` to it, for its inputs x [2 n, in].

        Errors of an embedding also count in lookups.
        """
        exact, own = np.split(x, 2)
        self._encode(
            name, lambda: Feedback(own, None, TIED_SHARE) if tied else Feedback(own, exact)
        )

    def _encode(self, name: str, feedback: Callable[[], Feedback]) -> Stored:
        """Return the stored arrays, by their names, of an encoded weight."""
        if self.encoded.has(name):
            arrays: Stored = self.encoded.read(name)
        else:
            arrays = self._encoded(name, feedback())
            self.encoded.write(name, arrays)
        self._did(name)
        return arrays

    def _did(self, name: str) -> None:
        self.done[name] = prod(self.plans[name].shape)
        if self.progress:
            total = sum(prod(self.plans[n].shape) for n in self.names)
            self.progress("calibrate", sum(self.done.values()), total)

    def _encoded(self, name: str, feedback: Feedback) -> dict[str, NDArray[Any]]:
        parts_by_suffix: dict[str, list[NDArray[Any]]] = {}
        for part, rows in self.encoding.rows(self.plans[name], self.checkpoint):
            prefix = part.name.removesuffix("weight")
            for suffix, array in feedback.encode(_grid(part), rows).items():
                parts_by_suffix.setdefault(prefix + suffix, []).append(array)
        return {stored: np.concatenate(each) for stored, each in parts_by_suffix.items()}

    def stored(self, name: str) -> NDArray[Any]:
        """Return a stored tensor, in `lookups`, of a parameter that no linear reads.

        Its values are those that search encodes.
        """
        if name not in self.last[1]:
            owner = self._owner(name)
            plan = self.plans[owner]
            parts = [
                store(self._looked_up(owner), owner, _searched(part, rows), plan.shape)
                for part, rows in self.encoding.rows(plan, self.checkpoint)
            ]
            self.last = (
                owner,
                {
                    n: np.concatenate([p[n] for p in parts]).reshape(*plan.shape[:-1], -1)
                    if plan.shape
                    else parts[0][n]
                    for n in parts[0]
                },
            )
        return self.last[1][name]

    def _looked_up(self, owner: str) -> Encoder:
        return EXACT if owner in self.encoding.exact else self.lookups

    def _owner(self, name: str) -> str:
        """Return the parameter that a stored tensor belongs to."""
        for owner, plan in self.plans.items():
            tensors = self._looked_up(owner).stored(owner, plan.shape)
            if any(tensor.name == name for tensor in tensors):
                return owner
        raise AssertionError(f"no parameter stores {name}")


def _grid(part: SchemeRows) -> Grid:
    scheme: Scheme = part.scheme
    assert isinstance(scheme, GroupQuant | BlockQuant), "all that are encoded have grids"
    return scheme.grid


def _of(part: SchemeRows, arrays: Stored) -> dict[str, NDArray[Any]]:
    """Return the arrays of a part by name suffix."""
    prefix = part.name.removesuffix("weight")
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _searched(part: SchemeRows, rows: Floats) -> Floats:
    """Return rows as they are after they were encoded by search."""
    scheme = part.scheme
    if not scheme.quantizes(part.name, rows.shape):
        return rows
    assert isinstance(scheme, GroupQuant | BlockQuant), "all that are encoded have grids"
    return scheme.decode(scheme.encode(rows), rows.shape[-1])
