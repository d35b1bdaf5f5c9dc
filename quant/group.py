"""Group quantization to 4 bits, in the layout of mlc-llm's q4f16_1 and q4f32_1, and to 8 bits.

Along the last axis `in`, each group of 32 weights has one scale. The stored tensors:

    <prefix>.q_weight  uint32       [out, ceil(in / 32) * bits]   32 / bits a word, lowest first
    <prefix>.q_scale   float_dtype  [out, ceil(in / 32)]

    w[o, i] ~ (q[o, i] - zero) * scale[o, i // 32],   scale = max |w| / zero,   q in 0 .. 2 * zero

zero is 7 or 127. With 4 bits every step of the encoding is rounded to `float_dtype`, the weights
first, as in mlc-llm. mlc-llm has no 8-bit presets: q8f16_1 and q8f32_1 continue its names and
layout, but only the scale is rounded to float16, whose numbers near 254 are an eighth apart.
Columns past `in` in the last group are 0 bits. A group whose scale is 0 holds zeros, q = zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .stored import FloatDtype, Shape, StoredTensor, cast

# Weights that one pass of the encoder works on: its temporaries (4 bytes each) fit the L2 cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuant:
    """Symmetric integers of `bits` with a scale for each `group` weights."""

    name: str
    float_dtype: FloatDtype
    bits: int = 4  # or 8
    group: int = 32  # weights along `in` that share a scale

    @property
    def zero(self) -> int:
        """The integer that stands for a weight of 0; also the largest magnitude."""
        return int(2 ** (self.bits - 1)) - 1

    @property
    def per_word(self) -> int:
        """Weights in a stored word."""
        return 32 // self.bits

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Whether it is a matrix, an embedding or a stack of experts; no bias, and no norm.

        Norms with weights for each head (Command R+) have two axes, too.
        """
        named = name.endswith(".weight") and not name.endswith("norm.weight")
        return named and len(shape) in (2, 3)

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """`q_weight` and `q_scale`, or the parameter itself if it is not quantized."""
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
        """Encode w [..., in]; the same bits as `encode_slowly`, some hundred MB/s a core.

        An infinite or missing number gives an infinite or missing scale.
        """
        *rows, columns = w.shape
        padded = -(-columns // self.group) * self.group
        flat = w.reshape(-1, columns)
        words = np.empty((len(flat), padded // self.per_word), "<u4")
        scales = np.empty((len(flat), padded // self.group), self.float_dtype)
        step = max(1, _BLOCK // padded)
        for start in range(0, len(flat), step):
            block = slice(start, start + step)
            rounded = cast(flat[block], self._step_dtype)
            if padded != columns:
                rounded = np.pad(rounded, ((0, 0), (0, padded - columns)))
            q, scales[block] = self._quantize(rounded)
            if padded != columns:
                q[:, columns:] = 0
            if self.bits == 4:
                pairs = q.view("<u2")  # packs two weights of a byte each into one byte
                q = (pairs | pairs >> 4).astype(np.uint8)
            words[block] = q.view("<u4")
        return {
            "q_weight": words.reshape(*rows, words.shape[-1]).astype(np.uint32, copy=False),
            "q_scale": scales.reshape(*rows, scales.shape[-1]),
        }

    def _quantize(self, w: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Quantize w [r, c] of the steps' dtype to q [r, c] and scales [r, c / group].

        Float16 steps are computed in float32 and rounded after each operation. That gives the bits
        of float16 arithmetic, because a float32 has more than twice the digits of a float16 plus
        two.
        """
        rows, columns = w.shape
        groups = w.reshape(rows, -1, self.group)
        scale = cast(np.abs(groups).max(-1) / groups.dtype.type(self.zero), self.float_dtype)
        divisor = np.where(scale == 0, np.inf, scale).astype(np.float32)[..., None]
        with np.errstate(invalid="ignore"):  # reported by the caller, who sees the scale
            q = self._rounded(groups.astype(np.float32) / divisor)
            q += self.zero
            q = self._rounded(q)
            np.rint(q, out=q)
            np.clip(q, 0, 2 * self.zero, out=q)
            return q.astype(np.uint8).reshape(rows, columns), scale

    @property
    def _step_dtype(self) -> FloatDtype:
        """The dtype to which all steps but the scale are rounded."""
        return self.float_dtype if self.bits == 4 else "float32"

    def _rounded(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x if self._step_dtype == "float32" else x.astype(np.float16).astype(np.float32)

    def encode_slowly(self, w: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Encode w [out, in], one weight after the other: the definition, and the test oracle."""
        number, step = (np.dtype(d).type for d in (self.float_dtype, self._step_dtype))
        zero = self.zero
        rows, columns = w.shape
        groups = -(-columns // self.group)
        words = np.zeros((rows, groups * self.group // self.per_word), np.uint32)
        scales = np.zeros((rows, groups), self.float_dtype)
        for o in range(rows):
            for g in range(groups):
                first = g * self.group
                weights = [step(x) for x in w[o, first : first + self.group]]
                scale = number(max(abs(x) for x in weights) / step(zero))
                scales[o, g] = scale
                for i, x in enumerate(weights, start=first):
                    q = int(np.rint(x / step(scale) + step(zero))) if scale else zero
                    q = min(max(q, 0), 2 * zero)
                    words[o, i // self.per_word] |= np.uint32(q << (i % self.per_word * self.bits))
        return {"q_weight": words, "q_scale": scales}

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """q_weight [..., words], q_scale [..., groups] -> [..., in] float32, exact products."""
        words, scales = stored["q_weight"], stored["q_scale"].astype(np.float32)
        shifts = np.arange(self.per_word, dtype=np.uint32) * np.uint32(self.bits)
        q = (words[..., None] >> shifts) & np.uint32(2**self.bits - 1)
        centred = q.astype(np.float32).reshape(*scales.shape, self.group) - np.float32(self.zero)
        w: NDArray[np.float32] = centred * scales[..., None]
        return w.reshape(*words.shape[:-1], -1)[..., :columns]

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """(q - zero) * scale."""
        words, scales = stored
        shift = (column % self.per_word * self.bits).astype("uint32")
        q = (words[row, column // self.per_word] >> shift).astype("int32") & (2**self.bits - 1)
        scale = scales[row, column // self.group].astype("float32")
        return (q - self.zero).astype("float32") * scale

    def kernel_spec(self) -> dict[str, Any]:
        """The fields of a kernel's `LinearSpec` that the scheme decides."""
        return {"scheme": f"q{self.bits}", "scale_dtype": self.float_dtype, "group": self.group}


GROUPS = (
    GroupQuant(name="q4f16_1", float_dtype="float16"),
    GroupQuant(name="q4f32_1", float_dtype="float32"),
    GroupQuant(name="q8f16_1", float_dtype="float16", bits=8),
    GroupQuant(name="q8f32_1", float_dtype="float32", bits=8),
)
