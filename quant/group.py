"""Group quantization to 4 bits, in the layout of mlc-llm's q4f16_1 and q4f32_1, and to 8 bits.

Each group of 32 weights along the last axis `in` shares one scale. The stored tensors are:

    <prefix>.q_weight  uint32       [out, ceil(in / 32) * bits]   32 / bits per word, lowest first
    <prefix>.q_scale   float_dtype  [out, ceil(in / 32)]

    w[o, i] ~ (q[o, i] - zero) * scale[o, i // 32],   zero = 7 or 127

With 4 bits, q is 0 to 15, so the integers q - zero are -7 to 8. A scale may be negative, so that
the integer 8 can represent a large weight of either sign. With 8 bits, q is 0 to 254, because
kernels store q - zero in an int8. `search.py` finds the scale with the least squared error. mlc-llm
computes the scale as max |w| / 7 and does not use q = 15; the layout is the same, so both are
decoded alike. mlc-llm has no 8-bit schemes; q8f16_1 and q8f32_1 follow its naming. In the last
group, the bits of columns beyond `in` are 0. If a scale is 0, all weights of its group have
q = zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .grid import Integers, Scales, padded, rounded, words
from .search import Floats, Levels, best_scales, to_integers, weighted
from .stored import FloatDtype, Shape, StoredTensor, cast

_HALF_MAX = 65504.0  # largest finite float16
# Search parameters by number of bits. More values of k would take longer and hardly reduce the
# error (tests/quant/test_search.py).
_LEVELS = {
    4: Levels(least=-7, most=8, tried=(8.0, 7.2, 7.6, 8.4, 8.8, -7.0, -6.2, -6.6, -7.4, -7.8)),
    8: Levels(least=-127, most=127, tried=(127.0, 125.5, 129.0)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuant:
    """The scheme that stores matrices as integers of `bits` bits with one scale per group."""

    name: str
    float_dtype: FloatDtype
    bits: int = 4  # 4 or 8
    group: int = 32  # number of weights along `in` that share a scale
    # Version of the algorithm of `encode`. The hash of a conversion covers it, so results of
    # other versions are converted again.
    encoder: int = 2

    @property
    def zero(self) -> int:
        """Return the value of q that represents a weight of 0."""
        return int(2 ** (self.bits - 1)) - 1

    @property
    def per_word(self) -> int:
        """Return the number of weights in a stored uint32."""
        return 32 // self.bits

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Return whether the parameter is a matrix, an embedding or a stack of expert matrices.

        Norms are recognized by name, because norms with weights per head (Command R+) have two
        axes, too.
        """
        named = name.endswith(".weight") and not name.endswith("norm.weight")
        return named and len(shape) in (2, 3)

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """Return `q_weight` and `q_scale`, or one float tensor for an unquantized parameter."""
        if not self.quantizes(name, shape):
            return (StoredTensor(name, tuple(shape), self.float_dtype),)
        prefix = name.removesuffix("weight")
        rows, groups = tuple(shape[:-1]), -(-shape[-1] // self.group)
        return (
            StoredTensor(
                f"{prefix}q_weight", (*rows, groups * self.group // self.per_word), "uint32"
            ),
            StoredTensor(f"{prefix}q_scale", (*rows, groups), self.float_dtype),
        )

    def encode(self, w: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Encode w [..., in], at about 30 million weights per second on one core.

        The scale of a group with an infinity or NaN is not finite.
        """
        *rows, columns = w.shape
        arrays = rounded(self.grid, w.reshape(-1, columns))
        return {name: array.reshape(*rows, array.shape[-1]) for name, array in arrays.items()}

    @property
    def grid(self) -> GroupGrid:
        """Return what weights are rounded to."""
        return GroupGrid(self)

    @property
    def levels(self) -> Levels:
        """Return the range of q - zero, and the parameters of the search for scales."""
        return _LEVELS[self.bits]

    def stored_scales(self, scales: NDArray[np.float32]) -> NDArray[Any]:
        """Round scales to `float_dtype`; scales that are too large become infinite.

        With 4-bit float16 schemes, that includes scales whose largest weight exceeds float16,
        because GEMM kernels for tensor cores dequantize to float16.
        """
        stored = cast(scales, self.float_dtype)
        if self.bits == 4 and self.float_dtype == "float16":
            fits = np.abs(stored.astype(np.float32)) * self.levels.most <= _HALF_MAX
            stored = np.where(fits | ~np.isfinite(stored), stored, np.float16(np.inf))
        return stored

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Dequantize q_weight [..., words], q_scale [..., groups] -> float32 [..., in], exactly."""
        words, scales = stored["q_weight"], stored["q_scale"].astype(np.float32)
        shifts = np.arange(self.per_word, dtype=np.uint32) * np.uint32(self.bits)
        q = (words[..., None] >> shifts) & np.uint32(2**self.bits - 1)
        centred = q.astype(np.float32).reshape(*scales.shape, self.group) - np.float32(self.zero)
        w: NDArray[np.float32] = centred * scales[..., None]
        return w.reshape(*words.shape[:-1], -1)[..., :columns]

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Return the TIR expression of one dequantized element, (q - zero) * scale in float32."""
        words, scales = stored
        shift = (column % self.per_word * self.bits).astype("uint32")
        q = (words[row, column // self.per_word] >> shift).astype("int32") & (2**self.bits - 1)
        scale = scales[row, column // self.group].astype("float32")
        return (q - self.zero).astype("float32") * scale

    def kernel_spec(self) -> dict[str, Any]:
        """Return the fields of a kernel's `LinearSpec` that depend on the scheme."""
        return {"scheme": f"q{self.bits}", "scale_dtype": self.float_dtype, "group": self.group}


@dataclass(frozen=True, slots=True)
class GroupGrid:
    """What weights of a group scheme are rounded to; a block is a group."""

    own: GroupQuant

    @property
    def group(self) -> int:
        """Return the number of columns that share a scale."""
        return self.own.group

    @property
    def block(self) -> int:
        """Return the same."""
        return self.own.group

    @property
    def path_bits(self) -> int:
        """Return 0: values of integers do not depend on others."""
        return 0

    def scales(self, w: Floats, importance: Floats | None = None) -> Scales:
        """Find the scales of a group: see `Grid.scales`."""
        total = None if importance is None else weighted(importance)
        stored = self.own.stored_scales(best_scales(w, self.own.levels, total))
        return Scales(stored.astype(np.float32)[None], None, {"q_scale": stored[:, None]})

    def nearest(self, units: Floats) -> Integers:
        """Return the nearest stored integers: see `Grid.nearest`."""
        q = units.copy()
        to_integers(q, self.own.levels)
        with np.errstate(invalid="ignore"):  # the caller detects the non-finite scale
            return (q + np.float32(self.own.zero)).astype(np.uint8)

    def values(self, q: Integers) -> Floats:
        """Return the values of stored integers."""
        return q.astype(np.float32) - np.float32(self.own.zero)

    def fields(self, q: Integers) -> dict[str, NDArray[Any]]:
        """Return q_weight of integers q [n, columns]; those of columns beyond them are 0."""
        return {"q_weight": words(padded(q, self.group), self.own.bits)}


GROUPS = (
    GroupQuant(name="q4f16_1", float_dtype="float16"),
    GroupQuant(name="q4f32_1", float_dtype="float32"),
    GroupQuant(name="q8f16_1", float_dtype="float16", bits=8),
    GroupQuant(name="q8f32_1", float_dtype="float32", bits=8),
)
