"""The rules of a weight map: how a checkpoint's tensors become a model's parameters.

A *pattern* is either a suffix that starts at a dot of the name ("qkv_proj.weight"; the part before
it is kept), or, if it has a `*`, the whole name ("model.layers.*.mlp.up.weight"); a star matches
one or more characters, and the n-th star of `theirs` is what the n-th of `ours` matched.

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
    """`ours` is the concatenation of `theirs` along `axis`."""

    ours: str
    theirs: tuple[str, ...]
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    """`theirs` cut along `axis` gives `ours`, in order; our shapes say where."""

    ours: tuple[str, ...]
    theirs: str
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """`ours` [e, rows, columns] stacks `theirs`, one tensor for each number that replaces `{}`."""

    ours: str
    theirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unpack:
    """`ours` [e, rows, columns] of `theirs` [e, columns, rows], or of MXFP4: BLOCKS and SCALES.

    Source of the format: https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-
    spec-final-pdf. `theirs` with "_blocks" uint8 [e, rows, groups, 16] has two numbers a byte, the
    first in its low half; with "_scales" uint8 [e, rows, groups] the exponents plus 127 of 32.
    Biases are [e, rows] on both sides.
    """

    ours: str
    theirs: str
    interleaved: bool  # their rows alternate between our first and second half


@dataclass(frozen=True, slots=True)
class Heads:
    """`ours` [heads, rows, columns] are some rows of each head of `theirs` [heads * all, ...]."""

    ours: str
    theirs: str
    # From a configuration: first row, stop, rows of a head. Not in the repr, which would have an
    # address.
    rows: Callable[[Any], tuple[int, int, int]] = field(repr=False)
    transposed: bool  # `ours` is [heads, columns, rows]


@dataclass(frozen=True, slots=True)
class Transpose:
    """`ours` [a, b] is `theirs` [b, a]."""

    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Rename:
    """What we call `ours`, the checkpoint calls `theirs`."""

    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Tie:
    """`ours` may be the same tensor as `theirs`, if the configuration's `when` is true."""

    ours: str
    theirs: str
    when: str = "tie_word_embeddings"


@dataclass(frozen=True, slots=True)
class Constant:
    """All elements of `ours` are `value`; no checkpoint has the tensor."""

    ours: str
    value: float


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rows of `ours` are divided by their lengths, if the configuration's `when` is true."""

    ours: str
    when: str


@dataclass(frozen=True, slots=True)
class Drop:
    """A tensor of the checkpoint that no parameter uses."""

    theirs: str


@dataclass(frozen=True, slots=True)
class SpareLayers:
    """The configuration's `count` layers after the last one are not used."""

    theirs: str  # its first star is the layer
    count: str


@dataclass(frozen=True, slots=True)
class UnusedIn:
    """Tensors of some layers are not used."""

    theirs: str  # its first star is the layer
    layers: Callable[[Any], Container[int]]  # of a configuration


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of heads whose rotated dimensions are pairs (0 with 1): ours are halves.

    A rotation of (0, 1), (2, 3), ... becomes one of (0, half), (1, half + 1), ...; no score
    changes, because q and k are reordered alike.
    """

    head_dim: int
    rotary_dim: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of our rows theirs."""
        half = self.rotary_dim // 2
        head, k = rows // self.head_dim, rows % self.head_dim
        paired = np.where(k < half, 2 * k, 2 * (k - half) + 1)
        return head * self.head_dim + np.where(k < 2 * half, paired, k)


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows [g, h / g + 2, e], k and v after the query heads of a kv head: ours are all q, k, v."""

    heads: int
    kv_heads: int
    head_dim: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of our rows theirs."""
        h, g = self.heads, self.kv_heads
        head, k = rows // self.head_dim, rows % self.head_dim
        shared = h // g
        kv = (head - h) % g * (shared + 2) + shared + (head - h) // g
        place = np.where(head < h, head // shared * (shared + 2) + head % shared, kv)
        return place * self.head_dim + k


@dataclass(frozen=True, slots=True)
class RotatedFirst:
    """Rows of heads whose last `rotated` elements rotate: ours come first, as halves."""

    rest: int
    rotated: int
    paired: bool  # theirs rotate in pairs of neighbours

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of our rows theirs."""
        size = self.rest + self.rotated
        head, k = rows // size, rows % size
        half = self.rotated // 2
        paired = np.where(k < half, 2 * k, 2 * (k - half) + 1) if self.paired else k
        return head * size + np.where(k < self.rotated, self.rest + paired, k - self.rotated)


class Order(Protocol):
    """An order of a checkpoint's rows: a frozen record, whose `repr` identifies it."""

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of our rows theirs."""


@dataclass(frozen=True, slots=True)
class Reorder:
    """The rows of `theirs` in the order that `order` gives for a configuration."""

    theirs: str
    order: Callable[[Any], Order]


Word = (
    Concat
    | Stack
    | Unpack
    | Heads
    | Split
    | Transpose
    | Constant
    | UnitRows
    | Rename
    | Tie
    | Drop
    | SpareLayers
    | UnusedIn
    | Reorder
)


def concat(ours: str, *theirs: str, axis: int = 0) -> Concat:
    """Fuse several: `concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", ...)`."""
    _same_stars(ours, *theirs)
    return Concat(ours, theirs, axis)


def stack(ours: str, *theirs: str) -> Stack:
    """All experts' matrices in one: `stack("experts.up.weight", "experts.{}.up.weight")`."""
    _same_stars(ours, *theirs)
    return Stack(ours, theirs)


def unpack(ours: str, theirs: str, *, interleaved: bool = False) -> Unpack:
    """All experts' matrices from one tensor, transposed or in MXFP4 (gpt-oss)."""
    _same_stars(ours, theirs)
    return Unpack(ours, theirs, interleaved)


def heads(
    ours: str,
    theirs: str,
    rows: Callable[[Any], tuple[int, int, int]],
    *,
    transposed: bool = False,
) -> Heads:
    """A matrix for each head, from a tensor that also has others (DeepSeek's kv_b_proj)."""
    _same_stars(ours, theirs)
    return Heads(ours, theirs, rows, transposed)


def split(theirs: str, *ours: str, axis: int = 0) -> Split:
    """Cut one; parts in order: `split("c_attn.weight", "q_proj.weight", "k_proj.weight")`."""
    _same_stars(theirs, *ours)
    return Split(ours, theirs, axis)


def transpose(ours: str, theirs: str) -> Transpose:
    """Swap the axes of a matrix, for checkpoints that store [in, out]."""
    _same_stars(ours, theirs)
    return Transpose(ours, theirs)


def rename(ours: str, theirs: str) -> Rename:
    """Another name, or with stars another prefix: `rename("model.*", "transformer.*")`."""
    _same_stars(ours, theirs)
    return Rename(ours, theirs)


def tie(ours: str, theirs: str, *, when: str = "tie_word_embeddings") -> Tie:
    """A checkpoint may lack `ours` if the configuration's `when` is true: it is `theirs` then.

    A checkpoint that has `ours` although the model has no such parameter is accepted, if the two
    tensors are equal; `WeightPlan.equal` names the pairs that a conversion has to compare.
    """
    _same_stars(ours, theirs)
    return Tie(ours, theirs, when)


def reorder(theirs: str, order: Callable[[Any], Order]) -> Reorder:
    """Take a tensor's rows in another order: `reorder("q_proj.weight", pairs)`."""
    return Reorder(theirs, order)


def constant(ours: str, value: float) -> Constant:
    """A parameter that the family does not have, such as the weight of a norm without one."""
    return Constant(ours, value)


def unit_rows(ours: str, *, when: str) -> UnitRows:
    """Normalise rows at conversion that the family normalises in every step."""
    return UnitRows(ours, when)


def drop(theirs: str) -> Drop:
    """Name a tensor that has no effect, such as a stored rotary table."""
    return Drop(theirs)


def spare_layers(theirs: str, count: str) -> SpareLayers:
    """Name the layers of multi-token prediction: `spare_layers("model.layers.*.*", "num_mtp")`."""
    return SpareLayers(theirs, count)


def unused_in(theirs: str, layers: Callable[[Any], Container[int]]) -> UnusedIn:
    """Name tensors that some layers do not use: `unused_in("model.layers.*.k_proj.*", shared)`."""
    return UnusedIn(theirs, layers)


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    if "*" in pattern:
        return re.compile("(.+?)".join(re.escape(part) for part in pattern.split("*")))
    return re.compile(r"(.*\.|)" + re.escape(pattern))


def match(pattern: str, name: str) -> tuple[str, ...] | None:
    """What the stars (or the part before a suffix) match; None if `name` does not match."""
    found = _regex(pattern).fullmatch(name)
    return found.groups() if found else None


def fill(pattern: str, stars: Sequence[str]) -> str:
    """Insert the result of `match` into the other pattern of the same rule."""
    if "*" not in pattern:
        return stars[0] + pattern
    return "".join(p + s for p, s in zip(pattern.split("*"), [*stars, ""], strict=True))


def counterpart(ours: str, theirs: str, name: str) -> str | None:
    """The name in `theirs` for `name`; None if `ours` does not match it."""
    stars = match(ours, name)
    return None if stars is None else fill(theirs, stars)


def renamed(words: Sequence[Word], name: str) -> str:
    """The checkpoint's name after every `rename`."""
    for word in words:
        if isinstance(word, Rename):
            name = counterpart(word.ours, word.theirs, name) or name
    return name


def _same_stars(*patterns: str) -> None:
    counts = {pattern.count("*") for pattern in patterns}
    assert len(counts) == 1, f"patterns of one word need the same number of stars: {patterns}"
