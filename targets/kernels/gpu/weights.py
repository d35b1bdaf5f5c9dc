"""Weights in the portable layout, eight at a time: a word of 4-bit ones, or as many floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from ..specs import LinearSpec
from . import emit as e

WORD = 8  # weights of a uint32
ZERO = 7  # a nibble that stands for 0


@dataclass(frozen=True, slots=True)
class Weights:
    """The stored tensors of one matrix [N, K], and how an element is read."""

    spec: LinearSpec
    tensors: tuple[Any, ...]  # TIR buffers, in the order of the spec's portable layout

    def word(self, row: Any, index: Any) -> list[Any]:
        """Emit the load of w[row, 8 * index : 8 * index + 8]; eight float32 expressions.

        Beyond K they are finite, and have to be multiplied by zeros.
        """
        if self.spec.scheme == "q4":
            return self._nibbles(row, index)
        (tensor,) = self.tensors
        k = [index * WORD + i for i in range(WORD)]
        return [self._guarded(i, T.Cast("float32", tensor[row, i])) for i in k]

    def _nibbles(self, row: Any, index: Any) -> list[Any]:
        words, scales = self.tensors
        word = e.let(words[row, index])
        scale = e.let(T.Cast("float32", scales[row, index * WORD // self.spec.group]))
        return [
            T.Cast(
                "float32",
                T.Cast("int32", T.bitwise_and(T.shift_right(word, T.uint32(4 * i)), T.uint32(15)))
                - T.int32(ZERO),
            )
            * scale
            for i in range(WORD)
        ]

    def _guarded(self, k: Any, value: Any) -> Any:
        if self.spec.in_features % 32 == 0:
            return value
        return T.if_then_else(k < self.spec.in_features, value, T.float32(0))


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
