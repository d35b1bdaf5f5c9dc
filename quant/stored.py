"""A tensor of a weight folder, whatever the scheme."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
FloatDtype = Literal["float16", "float32"]


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a weight folder."""

    name: str
    shape: Shape
    dtype: str  # NumPy's and TVM's name: "uint32", "float16"

    @property
    def nbytes(self) -> int:
        """Size without padding."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def cast(w: NDArray[np.float32], dtype: FloatDtype) -> NDArray[Any]:
    """Round to `dtype`, too large values to infinity."""
    with np.errstate(over="ignore"):
        return w.astype(dtype)
