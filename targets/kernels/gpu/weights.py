"""Weights in the portable layout, eight at a time: a word of 4-bit ones, or as many floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from ..specs import LinearSpec
from . import emit as e

WORD = 8  # weights of a uint32
ZERO = 7  # a nibble that stands for 0
GROUP = 32  # weights that a lane adds up before it multiplies by their scale
WORDS = GROUP // WORD
_MAGIC = 0x4B000000  # float32 2^23: an integer below 2^23 in its low bits is added to it


@dataclass(frozen=True, slots=True)
class Weights:
    """The stored tensors of one matrix [N, K], and how an element is read."""

    spec: LinearSpec
    tensors: tuple[Any, ...]  # TIR buffers, in the order of the spec's portable layout

    @property
    def has_scales(self) -> bool:
        """Whether the eight numbers of a word are to be multiplied by `scale`."""
        return self.spec.scheme == "q4"

    @property
    def whole_groups(self) -> bool:
        """Whether K is a multiple of GROUP: nothing to guard, and rows are aligned."""
        return self.spec.in_features % GROUP == 0

    def scale(self, row: Any, group: Any) -> Any:
        """Emit the load of the scale of a group of a row, float32."""
        return e.let(T.Cast("float32", self.tensors[1][row, group]))

    def group(self, row: Any, group: Any) -> Callable[[int], list[Any]]:
        """Emit the load of a group of a row; the result emits its words, as `word` does."""
        if self.spec.scheme == "q4":
            words = e.vector(self.tensors[0], row, group * WORDS)
            return lambda word: _nibbles(words[word])
        return lambda word: self.word(row, group * WORDS + word)

    def word(self, row: Any, index: Any) -> list[Any]:
        """Emit the load of w[row, 8 * index : 8 * index + 8], unscaled; eight float32 expressions.

        Beyond K they are finite, and have to be multiplied by zeros.
        """
        tensor = self.tensors[0]
        if self.spec.scheme == "q4":
            return _nibbles(e.let(tensor[row, index]))
        if self.spec.scheme == "f32" and self.whole_groups:
            return [x for half in (0, 4) for x in e.vector(tensor, row, index * WORD + half)]
        k = [index * WORD + i for i in range(WORD)]
        return [self._guarded(i, T.Cast("float32", tensor[row, i])) for i in k]

    def _guarded(self, k: Any, value: Any) -> Any:
        if self.whole_groups:
            return value
        return T.if_then_else(k < self.spec.in_features, value, T.float32(0))


def _nibbles(word: Any) -> list[Any]:
    """The eight numbers of a word, -7 to 8, float32; exact, without a conversion."""
    bits = [T.bitwise_and(T.shift_right(word, T.uint32(4 * i)), T.uint32(15)) for i in range(WORD)]
    return [
        T.reinterpret("float32", T.bitwise_or(b, T.uint32(_MAGIC))) - T.float32(2**23 + ZERO)
        for b in bits
    ]


def stored_shapes(spec: LinearSpec) -> tuple[tuple[tuple[int, int], str], ...]:
    """Shape and dtype of each portable tensor; see LinearSpec."""
    n, k = spec.out_features, spec.in_features
    if spec.scheme == "q4":
        groups = -(-k // spec.group)
        assert spec.scale_dtype is not None
        return (
            ((n, groups * spec.group // WORD), "uint32"),
            ((n, groups), spec.scale_dtype),
        )
    return (((n, k), "float32" if spec.scheme == "f32" else "float16"),)


def stored_parameters(spec: LinearSpec) -> list[e.Parameter]:
    """The portable tensors as parameters of a kernel, "w0" and "w1"."""
    return [(f"w{i}", shape, dtype) for i, (shape, dtype) in enumerate(stored_shapes(spec))]
