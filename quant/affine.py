"""Schemes that keep integers of 4 or 8 bits with a scale and a zero point or minimum per group.

They hold what published checkpoints have and `group.py` cannot: zero points of 8-bit integers, and
MLX's minima. Stored tensors of a matrix [out, in] with groups of consecutive columns:

    <prefix>.q_weight  uint32       [out, ceil(in * bits / 32)]   lowest bits first
    <prefix>.q_scale   float_dtype  [out, ceil(in / group)]
    <prefix>.q_zero or <prefix>.q_min  float_dtype  [out, ceil(in / group)]

    w[o, i] = (q[o, i] - zero) * scale    or    q[o, i] * scale + minimum

A zero point is an integer in a float, because not every device reads bytes. The schemes do not
encode. Kernels read groups of 32, 64 and 128 as block formats (`wherry.ops.blocks`); the reference
functions read whole rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import affine_name
from wherry.ops.record import AFFINE as KERNEL_SCHEME

from .stored import FloatDtype, Shape, StoredTensor

_ROW_AS_GROUP = 1 << 20  # a group that no row exceeds


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineQuant:
    """The scheme of integers with a zero point or minimum per group."""

    bits: int  # 4 or 8
    group: int  # number of weights along `in` that share a scale; 0: the whole row
    float_dtype: FloatDtype
    has_minimum: bool  # whether groups have minima instead of zero points

    @property
    def name(self) -> str:
        """Return a name such as "affine4f16_g64_min"."""
        name = affine_name(self.bits, self.float_dtype, self.group, self.has_minimum)
        return name if self.group else name.replace("_g0", "_row")

    @property
    def per_word(self) -> int:
        """Return the number of weights in a stored uint32."""
        return 32 // self.bits

    @property
    def shared(self) -> int:
        """Return the number of columns that share a scale, a number larger than any row for 0."""
        return self.group or _ROW_AS_GROUP

    @property
    def offset(self) -> str:
        """Return the suffix of the tensor of zero points or minima."""
        return "q_min" if self.has_minimum else "q_zero"

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Return whether the parameter is a matrix or a stack of expert matrices."""
        named = name.endswith(".weight") and not name.endswith("norm.weight")
        return named and len(shape) in (2, 3)

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """Return the tensors that the module's docstring lists."""
        prefix, rows = name.removesuffix("weight"), tuple(shape[:-1])
        groups = (*rows, -(-shape[-1] // self.shared))
        return (
            StoredTensor(f"{prefix}q_weight", (*rows, -(-shape[-1] // self.per_word)), "uint32"),
            StoredTensor(f"{prefix}q_scale", groups, self.float_dtype),
            StoredTensor(f"{prefix}{self.offset}", groups, self.float_dtype),
        )

    def arrays(
        self, q: NDArray[np.uint8], scale: NDArray[Any], offset: NDArray[Any]
    ) -> dict[str, NDArray[Any]]:
        """Return the stored tensors of integers [..., in], and scales and offsets [..., groups].

        Scales and offsets must be exact in `float_dtype`.
        """
        spare = -q.shape[-1] % self.per_word
        q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, spare)]) if spare else q
        return {
            "q_weight": packed(q, self.bits),
            "q_scale": scale.astype(self.float_dtype),
            self.offset: offset.astype(self.float_dtype),
        }

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Dequantize the stored tensors to float32 [..., in]."""
        words = stored["q_weight"]
        shifts = np.arange(self.per_word, dtype=np.uint32) * np.uint32(self.bits)
        q = (words[..., None] >> shifts) & np.uint32(2**self.bits - 1)
        q = q.reshape(*words.shape[:-1], -1)[..., :columns].astype(np.float32)
        group = np.arange(q.shape[-1]) // self.shared
        scale = stored["q_scale"].astype(np.float32)[..., group]
        offset = stored[self.offset].astype(np.float32)[..., group]
        w: NDArray[np.float32] = q * scale + offset if self.has_minimum else (q - offset) * scale
        return w

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Return the TIR expression of one dequantized element, in float32."""
        words, scales, offsets = stored
        shift = (column % self.per_word * self.bits).astype("uint32")
        word = words[row, column // self.per_word]
        q = ((word >> shift).astype("int32") & (2**self.bits - 1)).astype("float32")
        scale = scales[row, column // self.shared].astype("float32")
        offset = offsets[row, column // self.shared].astype("float32")
        return q * scale + offset if self.has_minimum else (q - offset) * scale

    def kernel_spec(self) -> dict[str, Any]:
        """Return the fields of a kernel's `LinearSpec` that depend on the scheme."""
        return {
            "scheme": self.name if self.group else KERNEL_SCHEME,
            "scale_dtype": self.float_dtype,
            "group": self.shared,
        }


def packed(q: NDArray[np.uint8], bits: int) -> NDArray[np.uint32]:
    """Pack integers of 4 or 8 bits [..., n] into words [..., n * bits / 32], lowest bits first."""
    q = np.ascontiguousarray(q)
    if bits == 4:
        q = q[..., 0::2] | q[..., 1::2] << np.uint8(4)
    return np.ascontiguousarray(q).view("<u4").astype(np.uint32, copy=False)


_FLOATS: tuple[FloatDtype, ...] = ("float16", "float32")
AFFINE = tuple(
    AffineQuant(bits=bits, group=group, float_dtype=dtype, has_minimum=minimum)
    for bits, group, dtype, minimum in product((4, 8), (32, 64, 128, 0), _FLOATS, (False, True))
)
