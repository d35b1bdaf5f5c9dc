"""Resolves a weight map: which checkpoint tensors become which parameter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing

from .rules import (
    Concat,
    Constant,
    Drop,
    Either,
    Heads,
    Order,
    Reorder,
    SpareLayers,
    Split,
    Stack,
    Tie,
    Transpose,
    UnitRows,
    Unpack,
    UnusedIn,
    WeightRule,
    counterpart,
    fill,
    match,
    renamed,
)

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """The part [start, stop) of a parameter's axis that one checkpoint tensor fills."""

    name: str
    start: int
    stop: int
    order: Order | None = None  # order of the tensor's rows

    def where(self, start: int, stop: int) -> SourceRows:
        """Return where the file has the parameter's rows [start, stop), counted as this piece's."""
        start, stop = self.start + start, self.start + stop
        if self.order is None:
            return SourceRows(start, stop, slice(None))
        rows = self.order.source(np.arange(start, stop))
        first = int(rows.min())
        return SourceRows(first, int(rows.max()) + 1, rows - first)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The smallest contiguous range [start, stop) of a tensor with the wanted rows, and which."""

    start: int
    stop: int
    selected: NDArray[np.int64] | slice  # index of each wanted row in the range, in their order


def rows_of(pieces: Sequence[Piece], start: int, stop: int) -> Iterator[tuple[int, SourceRows]]:
    """Yield the pieces that have rows [start, stop) of a parameter: (index, their rows)."""
    first = 0  # index of the piece's first row in the parameter
    for i, piece in enumerate(pieces):
        size = piece.stop - piece.start
        low, high = max(start - first, 0), min(stop - first, size)
        if low < high:
            yield i, piece.where(low, high)
        first += size


@dataclass(frozen=True, slots=True)
class ParameterPlan:
    """Plan of a parameter: the concatenation of its pieces along `axis`.

    With `transpose` there is one piece, the whole tensor [b, a] of a parameter [a, b]; with a
    `constant` there is none. A `stacked` parameter [e, rows, columns] has pieces along its e * rows
    rows. An `unpacked` one comes from one tensor, or from two of MXFP4.
    """

    name: str
    shape: Shape
    pieces: tuple[Piece, ...]
    axis: int = 0
    transpose: bool = False
    stacked: bool = False
    unpacked: Unpack | Heads | None = None
    # rows of each head that `Heads` takes: first, stop, rows of a head
    rows_of_head: tuple[int, int, int] = (0, 0, 0)
    constant: float | None = None
    unit_rows: bool = False  # each row is divided by its length
    # Frames of a convolution over time, whose third axis they are, or a piece each: a still image
    # has the same in all, so they are summed. Not in the repr: the tensors' shapes say it.
    frames: int = field(default=1, repr=False)

    @property
    def rows(self) -> Shape:
        """Return the shape along whose first axis the pieces lie."""
        if self.stacked or (len(self.shape) == 3 and self.unpacked):
            return (self.shape[0] * self.shape[1], *self.shape[2:])
        return self.shape

    @property
    def of_expert(self) -> int:
        """Return the number of pieces of an expert; of a parameter that is not stacked, all."""
        return len(self.pieces) // self.shape[0] if self.stacked else len(self.pieces)

    def of_each_expert(self, which: Collection[int]) -> tuple[Piece, ...]:
        """Return some pieces of each expert in turn, `which` of the `of_expert`."""
        own = self.of_expert
        return tuple(piece for i, piece in enumerate(self.pieces) if i % own in which)


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """The plans of all parameters, in the parameters' order."""

    parameters: tuple[ParameterPlan, ...]
    dropped: tuple[str, ...] = ()  # checkpoint tensors that no parameter uses
    # Those of them that no rule names: tensors of heads that an encoder has besides its output.
    # They do not change what is stored, so they are not in the repr, which identifies conversions.
    unused: tuple[str, ...] = field(default=(), repr=False)
    equal: tuple[tuple[str, str], ...] = ()  # pairs of checkpoint tensors that must be equal

    def renamed(self, names: Mapping[str, str]) -> WeightPlan:
        """Return this plan for a checkpoint with other tensor names, mapped by `names`."""
        parameters = tuple(
            replace(p, pieces=tuple(replace(piece, name=names[piece.name]) for piece in p.pieces))
            for p in self.parameters
        )
        equal = tuple((names[a], names[b]) for a, b in self.equal)
        dropped, unused = (tuple(names[n] for n in each) for each in (self.dropped, self.unused))
        return WeightPlan(parameters, dropped, unused, equal)

    def followed_by(self, other: WeightPlan) -> WeightPlan:
        """Return the plan of these parameters and, after them, those of another model."""
        return WeightPlan(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class _Recipe:
    """A rule applied to one parameter: checkpoint names, before their shapes are known."""

    sources: list[str]
    axis: int = 0
    transpose: bool = False
    parts: tuple[str, ...] = ()  # for a split: the parameters that share the tensor, in order
    stacked: bool = False


@dataclass(slots=True)
class _Planner:
    rules: Sequence[WeightRule]
    params: Mapping[str, Shape]
    tensors: Mapping[str, Shape]
    config: Any
    base: str | None = None  # see plan_weights
    problems: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    equal: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def recipe(self, name: str) -> _Recipe:
        for rule in self.rules:
            if isinstance(rule, Concat):
                if (stars := match(rule.param, name)) is not None:
                    if fused := self.fused(rule, stars):
                        return _Recipe([fused])
                    return _Recipe([fill(source, stars) for source in rule.sources], rule.axis)
            elif isinstance(rule, Stack):
                if (stars := match(rule.param, name)) is not None:
                    fused = self.fused(rule, stars)
                    return _Recipe([fused]) if fused else self.stack(rule.sources, name, stars)
            elif isinstance(rule, Unpack):
                if (stars := match(rule.param, name)) is not None:
                    stacked = fill(rule.source, stars)
                    if renamed(self.rules, stacked) in self.tensors:
                        return _Recipe([stacked])
                    return self.stack(rule.each, name, stars)
            elif isinstance(rule, Transpose):
                if (source := counterpart(rule.param, rule.source, name)) is not None:
                    return _Recipe([source], transpose=True)
            elif isinstance(rule, Split):
                for pattern in rule.params:
                    stars = match(pattern, name)
                    if stars is not None and renamed(self.rules, name) not in self.tensors:
                        parts = tuple(fill(p, stars) for p in rule.params)
                        return _Recipe([fill(rule.source, stars)], rule.axis, parts=parts)
            elif isinstance(rule, Tie) and (
                (source := counterpart(rule.param, rule.source, name)) is not None
            ):
                absent = renamed(self.rules, name) not in self.tensors
                return _Recipe([source if absent and self.is_tied(rule) else name])
        return _Recipe([name])

    def present(self, name: str) -> str:
        """Return the name of a tensor as this checkpoint has it."""
        if name not in self.tensors:
            for rule in self.rules:
                if isinstance(rule, Either):
                    other = counterpart(rule.param, rule.source, name)
                    if other in self.tensors:
                        return str(other)
        return name

    def fused(self, rule: Concat | Stack, stars: Sequence[str]) -> str | None:
        """Return the one tensor that has a parameter, or None if the checkpoint has several."""
        fused = None if rule.fused is None else fill(rule.fused, stars)
        return fused if fused and renamed(self.rules, fused) in self.tensors else None

    def stack(self, patterns: Sequence[str], name: str, stars: Sequence[str]) -> _Recipe:
        """Return the recipe of a parameter that has the matrices of all experts."""
        return _Recipe(self.each(patterns, self.params[name][0], stars), stacked=True)

    def each(self, patterns: Sequence[str], count: int, stars: Sequence[str]) -> list[str]:
        """Return the names of the tensors of `count` experts."""
        names = [fill(pattern, stars) for pattern in patterns]
        return [n.replace("{}", str(e)) for e in range(count) for n in names]

    def is_tied(self, rule: Tie) -> bool:
        return bool(getattr(self.config, rule.when, False))

    def parameter(self, name: str) -> ParameterPlan | None:
        """Plan one parameter, or record the error and return None."""
        shape = tuple(self.params[name])
        for rule in self.rules:
            if isinstance(rule, Constant) and match(rule.param, name) is not None:
                return ParameterPlan(name, shape, (), constant=rule.value)
            if isinstance(rule, Unpack) and match(rule.param, name) is not None:
                if not rule.each or self.has_packed(rule, name):
                    return self.unpacked(rule, name, shape)
            if isinstance(rule, Heads) and match(rule.param, name) is not None:
                if renamed(self.rules, name) not in self.tensors:
                    return self.heads(rule, name, shape)
        recipe = self.recipe(name)
        names = [self.present(renamed(self.rules, n)) for n in recipe.sources]
        self.used.update(names)
        missing = [n for n in names if n not in self.tensors]
        missing += [f"{part} of our own" for part in recipe.parts if part not in self.params]
        if missing:
            self.problems.append(f"missing: {', '.join(missing)}, for {name} {list(shape)}")
            return None
        tensor_shapes = [tuple(self.tensors[n]) for n in names]
        axis, parts = recipe.axis, recipe.parts
        have = _joined([s[::-1] if recipe.transpose else s for s in tensor_shapes], axis)
        want = _joined([tuple(self.params[p]) for p in parts], axis) if parts else shape
        if recipe.stacked:
            want = (shape[0] * shape[1], *shape[2:])
        if have != want or have is None:
            seen = ", ".join(f"{n} {list(s)}" for n, s in zip(names, tensor_shapes, strict=True))
            how = "transposed" if recipe.transpose else f"along axis {axis}"
            shapes = " + ".join(str(list(self.params[p])) for p in parts) or str(list(shape))
            self.problems.append(f"misshapen: {name} expects {shapes} {how}, found {seen}")
            return None
        start = sum(self.params[p][axis] for p in parts[: parts.index(name)]) if parts else 0
        if not shape:
            return ParameterPlan(name, shape, (Piece(names[0], 0, 1),))
        sizes = [shape[axis]] if parts or recipe.transpose else [s[axis] for s in tensor_shapes]
        pieces = (
            Piece(n, start, start + size, self.order(n))
            for n, size in zip(names, sizes, strict=True)
        )
        unit = any(
            isinstance(w, UnitRows)
            and match(w.param, name) is not None
            and bool(getattr(self.config, w.when, False))
            for w in self.rules
        )
        return ParameterPlan(
            name,
            shape,
            tuple(pieces),
            axis,
            recipe.transpose,
            recipe.stacked,
            unit_rows=unit,
        )

    def has_packed(self, rule: Unpack, name: str) -> bool:
        """Return whether the checkpoint has one tensor for all experts that has to be unpacked.

        transformers tells by its shape whether such a tensor is transposed, too.
        """
        source = renamed(self.rules, counterpart(rule.param, rule.source, name) or name)
        shape, own = self.tensors.get(source), tuple(self.params[name])
        if shape is None:
            return f"{source}_blocks" in self.tensors
        return tuple(shape) != own or own == (own[0], *own[:0:-1])

    def unpacked(self, rule: Unpack, name: str, shape: Shape) -> ParameterPlan | None:
        """Plan a parameter that contains the weights of all experts."""
        e, rows, *columns = shape
        source = renamed(self.rules, counterpart(rule.param, rule.source, name) or name)
        expected_shapes: dict[str, Shape] = {source: (e, *columns, rows)}
        if columns and source not in self.tensors:
            groups = (e, rows, -(-columns[0] // 32))
            expected_shapes = {f"{source}_blocks": (*groups, 16), f"{source}_scales": groups}
        self.used.update(expected_shapes)
        wrong = [n for n, s in expected_shapes.items() if tuple(self.tensors.get(n, ())) != s]
        if wrong:
            expected = ", ".join(f"{n} {list(expected_shapes[n])}" for n in wrong)
            present = ", ".join(f"{n} {list(self.tensors[n])}" for n in wrong if n in self.tensors)
            what = "misshapen" if present else "missing"
            self.problems.append(f"{what}: {name} expects {expected}, found {present or 'none'}")
            return None
        pieces = tuple(Piece(n, 0, e) for n in expected_shapes)
        return ParameterPlan(name, shape, pieces, unpacked=rule)

    def heads(self, rule: Heads, name: str, shape: Shape) -> ParameterPlan | None:
        """Plan a parameter that has a matrix for each head."""
        source = renamed(self.rules, counterpart(rule.param, rule.source, name) or name)
        self.used.add(source)
        count, rows, columns = shape
        first, stop, rows_per_head = rule.rows(self.config)
        matrix, expected = ((columns, rows), (count * rows_per_head, rows))
        if not rule.transposed:
            matrix, expected = (rows, columns), (count * rows_per_head, columns)
        assert matrix[0] == stop - first
        if self.tensors.get(source) != expected:
            present = self.tensors.get(source)
            what = "missing" if present is None else "misshapen"
            self.problems.append(
                f"{what}: {name} expects {source} {list(expected)}, "
                f"found {'none' if present is None else list(present)}"
            )
            return None
        piece = Piece(source, 0, expected[0])
        return ParameterPlan(
            name, shape, (piece,), unpacked=rule, rows_of_head=(first, stop, rows_per_head)
        )

    def order(self, name: str) -> Order | None:
        """Return the order of a checkpoint tensor's rows; None: unchanged."""
        for rule in self.rules:
            if not isinstance(rule, Reorder) or (stars := match(rule.source, name)) is None:
                continue
            if rule.layers is None or int(stars[0]) in rule.layers(self.config):
                return rule.order(self.config)
        return None

    def leftovers(self) -> Iterator[str]:
        """Yield unused checkpoint tensors, except those of `drop` and of heads."""
        modules = {self.module(name) for name in self.used}
        for name, shape in self.tensors.items():
            if name in self.used:
                continue
            if any(self.drops(rule, name) for rule in self.rules):
                self.dropped.append(name)
            elif twin := self.twin(name):
                self.dropped.append(name)
                self.equal.append((name, twin))
            elif self.base is not None and self.module(name) not in modules:
                self.dropped.append(name)
                self.unused.append(name)
            else:
                yield f"surplus: {name} {list(shape)}, which no parameter uses"

    def module(self, name: str) -> str:
        """Return the outermost module of a tensor within the base, such as "pooler"."""
        return name.removeprefix(f"{self.base}.").partition(".")[0]

    def drops(self, rule: WeightRule, name: str) -> bool:
        """Return whether `rule` says that a tensor is not used."""
        if isinstance(rule, Drop):
            return match(rule.source, name) is not None
        if isinstance(rule, UnusedIn):
            stars = match(rule.source, name)
            layer = stars[0] if stars else ""
            return layer.isdecimal() and int(layer) in rule.layers(self.config)
        if not isinstance(rule, SpareLayers) or not (stars := match(rule.source, name)):
            return False
        first = int(getattr(self.config, "num_hidden_layers", 0))
        spare = range(first, first + int(getattr(self.config, rule.count, 0)))
        return stars[0].isdecimal() and int(stars[0]) in spare

    def twin(self, name: str) -> str | None:
        """Return the tensor that a stored copy of a tied tensor must equal; None: no such tie."""
        for rule in self.rules:
            if isinstance(rule, Tie) and self.is_tied(rule):
                pair = renamed(self.rules, rule.param), renamed(self.rules, rule.source)
                other = counterpart(*pair, name)
                other = None if other is None else self.present(other)
                if other is not None and self.tensors.get(other) == self.tensors[name]:
                    return other
        return None


def _joined(shapes: Sequence[Shape], axis: int) -> Shape | None:
    """Return the shape of a concatenation; None if the shapes do not fit."""
    first = shapes[0]
    if len(shapes) == 1:
        return first
    if any(len(s) != len(first) or axis >= len(s) for s in shapes):
        return None
    if len({(*s[:axis], *s[axis + 1 :]) for s in shapes}) != 1:
        return None
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def plan_weights(
    rules: Sequence[WeightRule],
    parameters: Mapping[str, Shape],
    checkpoint: Mapping[str, Shape],
    config: Any = None,
    *,
    base: str | None = None,
) -> WeightPlan:
    """Plan all parameters of a model.

    Args:
        rules: the weight map of a model file.
        parameters: parameter names and shapes, unquantized.
        checkpoint: tensor names and shapes of the checkpoint.
        config: the configuration, which `tie` asks whether weights are tied.
        base: of models whose checkpoints may have heads that they do not use, the first part of
            the other names: a module without any tensor in use is dropped, and listed in `unused`;
            None: it is an error.

    Raises:
        ModelError: one, listing every missing, surplus and misshapen tensor.
    """
    planner = _Planner(rules, parameters, checkpoint, config, base)
    plans = [planner.parameter(name) for name in parameters]
    problems = [*planner.problems, *planner.leftovers()]
    if problems:
        lacks_block = any(p.startswith("missing") and " for draft." in p for p in problems)
        hint = "Check that config.json belongs to these weights."
        if lacks_block:
            hint = (
                "Tensors of draft.* belong to the block of multi-token prediction, which many "
                "copies of a checkpoint leave out: leave out --mtp."
            )
        raise ModelError(
            f"The checkpoint's {len(checkpoint)} tensors do not fit the model's "
            f"{len(parameters)} parameters:\n{listing(problems)}\n"
            f"{hint}"
        )
    planned = tuple(p for p in plans if p is not None)
    assert sum(prod(p.shape) for p in planned) == sum(prod(s) for s in parameters.values())
    return WeightPlan(planned, tuple(planner.dropped), tuple(planner.unused), tuple(planner.equal))
