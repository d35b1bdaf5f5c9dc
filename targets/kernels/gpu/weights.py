"""Loads of weights in the portable layout, eight weights at a time.

Eight weights are a uint32 of nibbles, two uint32 of bytes, or eight floats. `block_weights` loads
those in the block formats of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import FusedLinearSpec, LinearSpec
from wherry.ops.blocks import FORMATS

from . import emit as e

WORD = 8  # weights loaded at a time: a uint32 of nibbles
BITS = {"q4": 4, "q8": 8}
ZEROS = {4: 7, 8: 127}  # bits -> the integer that stands for 0
GROUP = 32  # weights that a lane sums before it multiplies by their scale
WORDS = GROUP // WORD
# bits of float32 2^23: or-ing an integer below 2^23 into its low bits adds the integer
MAGIC = 0x4B000000


@dataclass(frozen=True, slots=True)
class Weights:
    """The stored tensors of one matrix [N, K], and loads of its elements."""

    spec: LinearSpec
    tensors: tuple[Any, ...]  # TIR buffers, in the order of the spec's portable layout

    @property
    def has_scales(self) -> bool:
        """Return whether the eight numbers of a word must be multiplied by `scale`."""
        return self.spec.scheme in BITS

    @property
    def full_groups(self) -> bool:
        """Return whether K is a multiple of GROUP: then rows are aligned and need no guards."""
        return self.spec.in_features % GROUP == 0

    def scale(self, row: Any, group: Any) -> Any:
        """Emit the load of the scale of a row's group, as float32."""
        return e.let(T.Cast("float32", self.tensors[1][row, group]))

    def group(self, row: Any, group: Any) -> Callable[[int], list[Any]]:
        """Emit the load of a row's group.

        Return a function that emits its words, as `word` does.
        """
        if bits := BITS.get(self.spec.scheme):
            count = GROUP * bits // 32  # number of uint32 in a group
            starts = range(0, count, 4)
            stored = [w for i in starts for w in e.vector(self.tensors[0], row, group * count + i)]
            each = count // WORDS
            return lambda word: _integers(stored[word * each : (word + 1) * each], bits)
        return lambda word: self.word(row, group * WORDS + word)

    def word(self, row: Any, index: Any) -> list[Any]:
        """Emit the load of w[row, 8 * index : 8 * index + 8], unscaled; return eight float32.

        Elements beyond K are finite; the caller multiplies them by zeros.
        """
        tensor = self.tensors[0]
        if bits := BITS.get(self.spec.scheme):
            count = WORD * bits // 32
            return _integers([e.let(tensor[row, index * count + i]) for i in range(count)], bits)
        if self.full_groups:
            return [x for half in (0, 4) for x in e.vector(tensor, row, index * WORD + half)]
        k = [index * WORD + i for i in range(WORD)]
        inside = self.spec.in_features
        return [T.if_then_else(i < inside, e.load(tensor, row, i), T.float32(0)) for i in k]

    def dequantized(self, row: Any, index: Any) -> list[Any]:
        """Emit the load of `word` times the scale; exact if the scale is float16."""
        values = self.word(row, index)
        if not self.has_scales:
            return values
        scale = self.scale(row, e.div(index, WORDS))
        return [value * scale for value in values]


def _integers(words: list[Any], bits: int) -> list[Any]:
    """Emit the integers in some uint32 as float32, from the lowest bits up.

    The result is exact, and uses no conversion instruction.
    """

    def number(word: Any, shift: int) -> Any:
        field = T.bitwise_and(T.shift_right(word, T.uint32(shift)), T.uint32(2**bits - 1))
        grown = T.reinterpret("float32", T.bitwise_or(field, T.uint32(MAGIC)))
        return grown - T.float32(2**23 + ZEROS[bits])

    return [number(word, shift) for word in words for shift in range(0, 32, bits)]


def fits_float16(spec: LinearSpec | FusedLinearSpec) -> bool:
    """Return whether matrix units may multiply in float16: scales have no more bits."""
    integers = spec.scheme in BITS or spec.scheme in FORMATS
    narrow = spec.scheme == "f16" or (integers and spec.scale_dtype == "float16")
    return narrow and spec.in_features % GROUP == 0


class ExpertMatrix:
    """View of one expert's matrix in a tensor [E, rows, columns]."""

    def __init__(self, buffer: Any, expert: Any) -> None:
        self.buffer, self.expert = buffer, expert
        self.dtype, self.shape = buffer.dtype, buffer.shape[1:]

    def __getitem__(self, index: tuple[Any, Any]) -> Any:
        return self.buffer[(self.expert, *index)]


def stored_shapes(spec: LinearSpec) -> tuple[tuple[tuple[int, int], str], ...]:
    """Return shape and dtype of each portable tensor; see LinearSpec."""
    n, k = spec.out_features, spec.in_features
    if spec.scheme in FORMATS:
        columns = FORMATS[spec.scheme].columns.values()
        return tuple(((n, -(-k // each)), dtype) for each, dtype in columns)
    if bits := BITS.get(spec.scheme):
        groups = -(-k // spec.group)
        assert spec.scale_dtype is not None
        return (
            ((n, groups * spec.group * bits // 32), "uint32"),
            ((n, groups), spec.scale_dtype),
        )
    return (((n, k), "float32" if spec.scheme == "f32" else "float16"),)


def stored_parameters(spec: LinearSpec) -> list[e.Parameter]:
    """Return the portable tensors as parameters of a kernel, "w0", "w1" and so on."""
    return [(f"w{i}", shape, dtype) for i, (shape, dtype) in enumerate(stored_shapes(spec))]
