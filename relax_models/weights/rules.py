"""The rules of a weight map: how a checkpoint's tensors become a model's parameters.

A *pattern* is either a suffix that starts at a dot of the name ("qkv_proj.weight"; the part before
it is kept), or, if it has a `*`, the whole name ("model.layers.*.mlp.up.weight"); a star matches
one or more characters, and the n-th star of `source` is what the n-th of `param` matched.

The first `concat`, `stack`, `split`, `transpose`, `constant` or `tie` that matches a parameter
applies; then each `rename`, in order, is applied to the resulting checkpoint names. A name that no
rule mentions is its own source. Every checkpoint tensor has to be used, or named by `drop`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Concat:
    """Rule: `param` is the concatenation of `sources` along `axis`.

    A checkpoint may have `param` in one tensor instead, named `fused`, if the rule has one.
    """

    param: str
    sources: tuple[str, ...]
    axis: int = 0
    fused: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Rule: `source`, split along `axis`, gives `params`, in order.

    The parameters' shapes say where. A checkpoint may have `params` themselves instead.
    """

    params: tuple[str, ...]
    source: str
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """Rule: `param` [e, rows, columns] stacks `sources`, one tensor per number that replaces `{}`.

    A checkpoint may have `param` in one tensor instead, named `fused`, if the rule has one.
    """

    param: str
    sources: tuple[str, ...]
    fused: str | None = None


@dataclass(frozen=True, slots=True)
class Unpack:
    """Rule: `param` [e, rows, columns] comes from `source` [e, columns, rows], or from MXFP4.

    `source` with "_blocks" uint8 [e, rows, groups, 16] has two numbers a byte, the first in its low
    half; with "_scales" uint8 [e, rows, groups] the exponents plus 127 of 32 numbers each. Biases
    are [e, rows] on both sides. Source of the format:
    https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf.

    A checkpoint may have `each` instead, if the rule has it: tensors as in `Stack`; or `source` as
    `param` is, [e, rows, columns].
    """

    param: str
    source: str
    # the checkpoint's rows alternate between the parameter's first and second half
    interleaved: bool
    each: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heads:
    """Rule: `param` [heads, rows, columns] takes some rows of each head of `source`.

    `source` is [heads * all, ...]. A checkpoint may have `param` itself instead.
    """

    param: str
    source: str
    # Function of a configuration: first row, stop, rows of a head. Not in the repr, which would
    # contain an address.
    rows: Callable[[Any], tuple[int, int, int]] = field(repr=False)
    transposed: bool  # whether `param` is [heads, columns, rows]


@dataclass(frozen=True, slots=True)
class Transpose:
    """Rule: `param` [a, b] is the transpose of `source` [b, a]."""

    param: str
    source: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Rule: the parameter `param` is called `source` in the checkpoint."""

    param: str
    source: str


@dataclass(frozen=True, slots=True)
class Either:
    """Rule: a checkpoint without the tensor `param`, a name after all `rename`s, has `source`."""

    param: str
    source: str


@dataclass(frozen=True, slots=True)
class Tie:
    """Rule: `param` may be the same tensor as `source`, if the configuration's `when` is true."""

    param: str
    source: str
    when: str = "tie_word_embeddings"


@dataclass(frozen=True, slots=True)
class Constant:
    """Rule: all elements of `param` are `value`; no checkpoint has the tensor."""

    param: str
    value: float


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rule: rows of `param` are divided by their lengths, if the configuration's `when` is true."""

    param: str
    when: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Rule: no parameter uses the checkpoint tensor."""

    source: str


@dataclass(frozen=True, slots=True)
class SpareLayers:
    """Rule: the configuration's `count` layers after the last one are not used."""

    source: str  # pattern whose first star is the layer
    count: str


@dataclass(frozen=True, slots=True)
class UnusedIn:
    """Rule: the tensors of some layers are not used."""

    source: str  # pattern whose first star is the layer
    # function of a configuration: layers whose tensors are not used
    layers: Callable[[Any], Container[int]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Row order of heads whose rotated dimensions are stored as pairs (0, 1); the model has halves.

    A rotation of (0, 1), (2, 3), ... becomes one of (0, half), (1, half + 1), ...; no score
    changes, because q and k are reordered alike.
    """

    head_dim: int
    rotary_dim: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        half = self.rotary_dim // 2
        head, k = rows // self.head_dim, rows % self.head_dim
        paired = np.where(k < half, 2 * k, 2 * (k - half) + 1)
        return head * self.head_dim + np.where(k < 2 * half, paired, k)


@dataclass(frozen=True, slots=True)
class Groups:
    """Row order [g, h / g + 2, e]: k and v follow the query heads of a KV head.

    The model has all rows of q, then of k, then of v.
    """

    heads: int
    kv_heads: int
    head_dim: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        h, g = self.heads, self.kv_heads
        head, k = rows // self.head_dim, rows % self.head_dim
        shared = h // g
        kv = (head - h) % g * (shared + 2) + shared + (head - h) // g
        place = np.where(head < h, head // shared * (shared + 2) + head % shared, kv)
        return place * self.head_dim + k


@dataclass(frozen=True, slots=True)
class RotatedFirst:
    """Row order of heads whose last `rotated` elements rotate.

    The model has these first, as halves.
    """

    rest: int
    rotated: int
    paired: bool  # whether the checkpoint rotates pairs of neighbours

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        size = self.rest + self.rotated
        head, k = rows // size, rows % size
        half = self.rotated // 2
        paired = np.where(k < half, 2 * k, 2 * (k - half) + 1) if self.paired else k
        return head * size + np.where(k < self.rotated, self.rest + paired, k - self.rotated)


class Order(Protocol):
    """Interface of row orders of a checkpoint: frozen records, which their `repr` identifies."""

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""


@dataclass(frozen=True, slots=True)
class Reorder:
    """Rule: the rows of `source` have the order that `order` gives for a configuration."""

    source: str  # with `layers`, a pattern whose first star is the layer
    order: Callable[[Any], Order]
    # function of a configuration: layers in which the rule applies; None: in all
    layers: Callable[[Any], Container[int]] | None = None


WeightRule = (
    Concat
    | Stack
    | Unpack
    | Heads
    | Split
    | Transpose
    | Constant
    | UnitRows
    | Rename
    | Either
    | Tie
    | Drop
    | SpareLayers
    | UnusedIn
    | Reorder
)


def concat(param: str, *sources: str, axis: int = 0, fused: str | None = None) -> Concat:
    """Concatenate tensors: `concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", ...)`.

    Some checkpoints of a family have one tensor instead, called `fused`.
    """
    _same_stars(param, *sources, *([] if fused is None else [fused]))
    return Concat(param, sources, axis, fused)


def stack(param: str, *sources: str, fused: str | None = None) -> Stack:
    """Stack all experts' matrices: `stack("experts.up.weight", "experts.{}.up.weight")`.

    Some checkpoints of a family have one tensor [e, rows, columns] for all, called `fused`.
    """
    _same_stars(param, *sources, *([] if fused is None else [fused]))
    return Stack(param, sources, fused)


def unpack(
    param: str, source: str, *, interleaved: bool = False, each: tuple[str, ...] = ()
) -> Unpack:
    """Take all experts' matrices from one tensor, transposed or in MXFP4 (gpt-oss).

    Some checkpoints have a tensor per expert instead: `each`, as in `stack`.
    """
    _same_stars(param, source, *each)
    return Unpack(param, source, interleaved, each)


def heads(
    param: str,
    source: str,
    rows: Callable[[Any], tuple[int, int, int]],
    *,
    transposed: bool = False,
) -> Heads:
    """Take a matrix per head from a tensor that also has others (DeepSeek's kv_b_proj)."""
    _same_stars(param, source)
    return Heads(param, source, rows, transposed)


def split(source: str, *params: str, axis: int = 0) -> Split:
    """Split a tensor in order: `split("c_attn.weight", "q_proj.weight", "k_proj.weight")`."""
    _same_stars(source, *params)
    return Split(params, source, axis)


def transpose(param: str, source: str) -> Transpose:
    """Swap the axes of a matrix, for checkpoints that store [in, out]."""
    _same_stars(param, source)
    return Transpose(param, source)


def rename(param: str, source: str) -> Rename:
    """Rename a tensor, or with stars a prefix: `rename("model.*", "transformer.*")`."""
    _same_stars(param, source)
    return Rename(param, source)


def either(param: str, source: str) -> Either:
    """Name a tensor of the checkpoint as only some checkpoints of the family do."""
    _same_stars(param, source)
    return Either(param, source)


def tie(param: str, source: str, *, when: str = "tie_word_embeddings") -> Tie:
    """Tie weights: a checkpoint may lack `param` if the configuration's `when` is true.

    `param` is `source` then. A checkpoint that has `param` although the model has no such parameter
    is accepted, if the two tensors are equal; `WeightPlan.equal` names the pairs that a conversion
    has to compare.
    """
    _same_stars(param, source)
    return Tie(param, source, when)


def reorder(
    source: str,
    order: Callable[[Any], Order],
    *,
    layers: Callable[[Any], Container[int]] | None = None,
) -> Reorder:
    """Take a tensor's rows in another order: `reorder("q_proj.weight", pairs)`."""
    return Reorder(source, order, layers)


def constant(param: str, value: float) -> Constant:
    """Fill a parameter that the family does not have, such as the weight of a norm without one."""
    return Constant(param, value)


def unit_rows(param: str, *, when: str) -> UnitRows:
    """Normalize rows once at conversion that the family normalizes in every step."""
    return UnitRows(param, when)


def drop(source: str) -> Drop:
    """Name a tensor that has no effect, such as a stored rotary table."""
    return Drop(source)


def spare_layers(source: str, count: str) -> SpareLayers:
    """Name the layers of multi-token prediction: `spare_layers("model.layers.*.*", "num_mtp")`."""
    return SpareLayers(source, count)


def unused_in(source: str, layers: Callable[[Any], Container[int]]) -> UnusedIn:
    """Name tensors that some layers do not use: `unused_in("model.layers.*.k_proj.*", shared)`."""
    return UnusedIn(source, layers)


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    if "*" in pattern:
        return re.compile("(.+?)".join(re.escape(part) for part in pattern.split("*")))
    return re.compile(r"(.*\.|)" + re.escape(pattern))


def match(pattern: str, name: str) -> tuple[str, ...] | None:
    """Return what the stars (or the part before a suffix) match; None if `name` does not match."""
    matched = _regex(pattern).fullmatch(name)
    return matched.groups() if matched else None


def fill(pattern: str, stars: Sequence[str]) -> str:
    """Insert the result of `match` into the other pattern of the same rule."""
    if "*" not in pattern:
        return stars[0] + pattern
    return "".join(p + s for p, s in zip(pattern.split("*"), [*stars, ""], strict=True))


def counterpart(param: str, source: str, name: str) -> str | None:
    """Return the name in `source` for `name`; None if `param` does not match it."""
    stars = match(param, name)
    return None if stars is None else fill(source, stars)


def renamed(rules: Sequence[WeightRule], name: str) -> str:
    """Return the checkpoint's name after every `rename`."""
    for rule in rules:
        if isinstance(rule, Rename):
            name = counterpart(rule.param, rule.source, name) or name
    return name


def _same_stars(*patterns: str) -> None:
    counts = {pattern.count("*") for pattern in patterns}
    assert len(counts) == 1, f"patterns of one word need the same number of stars: {patterns}"
