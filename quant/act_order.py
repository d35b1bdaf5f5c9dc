"""Schemes of matrices whose columns are stored in another order, together with that order.

Files of GGUF have the value heads of some models in an order of their own. GPTQ with act-order
assigns columns to groups by the size of their activations. A matrix is stored with its columns in
the file's order, or sorted by group, in another scheme, whose groups are consecutive, and

    <prefix>.q_order  int32 [in]   the column of the matrix that each stored column is

The quantization pass reorders x, so that the other scheme's kernels read the matrix:

    sum over i of x[i] * w[o, i]  =  sum over j of x[order[j]] * stored[o, j]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .affine import AFFINE, AffineQuant
from .blocks import BLOCKS, BlockQuant
from .group import GROUPS, GroupQuant
from .stored import FloatDtype, Shape, StoredTensor

ORDER = "q_order"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActOrderQuant:
    """The scheme that stores a matrix in another scheme with its columns reordered."""

    base: GroupQuant | AffineQuant | BlockQuant

    @property
    def name(self) -> str:
        """Return a name such as "q4f16_1_ordered"."""
        return f"{self.base.name}_ordered"

    @property
    def float_dtype(self) -> FloatDtype:
        """Return the dtype of scales."""
        return self.base.float_dtype

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Return whether the parameter is a matrix."""
        return self.base.quantizes(name, shape) and len(shape) == 2

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """Return the other scheme's tensors, and the order, which all rows share."""
        own = f"{name.removesuffix('weight')}{ORDER}"
        order = StoredTensor(own, (shape[-1],), "int32", shared=True)
        return (*self.base.stored(name, shape), order)

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Dequantize to float32 [..., in], in the order of the matrix."""
        order = stored[ORDER]
        sorted_ = self.base.decode(stored, len(order))
        unsorted = np.empty_like(sorted_)
        unsorted[..., order] = sorted_
        return unsorted

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Return the TIR expression of the element in a stored column; the pass reorders x."""
        return self.base.element(stored[:-1], row, column)

    def kernel_spec(self) -> dict[str, Any]:
        """Return the other scheme's fields, because its kernels read the reordered matrix."""
        return self.base.kernel_spec()


# Zero points of 4 bits; 8 bits of act-order are symmetric, or have no kernels.
_ZERO_POINTS = tuple(s for s in AFFINE if s.bits == 4 and s.group and not s.has_minimum)
_BASES: tuple[GroupQuant | AffineQuant | BlockQuant, ...] = (*GROUPS, *_ZERO_POINTS, *BLOCKS)
ACT_ORDER = tuple(ActOrderQuant(base=base) for base in _BASES)
