"""Weights in the portable layout, eight at a time: a word of nibbles, two of bytes, or floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from ..specs import LinearSpec
from . import emit as e

WORD = 8  # weights read at a time: a uint32 of nibbles
ZEROS = {4: 7, 8: 127}  # by bits: the integer that stands for 0


@dataclass(frozen=True, slots=True)
class Weights:
    """The stored tensors of one matrix [N, K], and how an element is read."""

    spec: LinearSpec
    tensors: tuple[Any, ...]  # TIR buffers, in the order of the spec's portable layout

    def word(self, row: Any, index: Any) -> list[Any]:
        """Emit the load of w[row, 8 * index : 8 * index + 8]; eight float32 expressions.

        Beyond K they are finite, and have to be multiplied by zeros.
        """
        if self.spec.scheme in ("q4", "q8"):
            return self._integers(row, index, int(self.spec.scheme[1:]))
        (tensor,) = self.tensors
        k = [index * WORD + i for i in range(WORD)]
        return [self._guarded(i, T.Cast("float32", tensor[row, i])) for i in k]

    def _integers(self, row: Any, index: Any, bits: int) -> list[Any]:
        words, scales = self.tensors
        count = WORD * bits // 32
        stored = [e.let(words[row, index * count + i]) for i in range(count)]
        scale = e.let(T.Cast("float32", scales[row, index * WORD // self.spec.group]))

        def value(word: Any, shift: int) -> Any:
            integer = T.bitwise_and(T.shift_right(word, T.uint32(shift)), T.uint32(2**bits - 1))
            return T.Cast("float32", T.Cast("int32", integer) - T.int32(ZEROS[bits])) * scale

        return [value(word, shift) for word in stored for shift in range(0, 32, bits)]

    def _guarded(self, k: Any, value: Any) -> Any:
        if self.spec.in_features % 32 == 0:
            return value
        return T.if_then_else(k < self.spec.in_features, value, T.float32(0))


def stored_shapes(spec: LinearSpec) -> tuple[tuple[tuple[int, int], str], ...]:
    """Shape and dtype of each portable tensor; see LinearSpec."""
    n, k = spec.out_features, spec.in_features
    if spec.scheme in ("q4", "q8"):
        groups = -(-k // spec.group)
        assert spec.scale_dtype is not None
        return (
            ((n, groups * spec.group * int(spec.scheme[1:]) // 32), "uint32"),
            ((n, groups), spec.scale_dtype),
        )
    return (((n, k), "float32" if spec.scheme == "f32" else "float16"),)
