"""Description of a tensor in a converted weight folder, common to all schemes."""

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
    """The name, shape and dtype of one tensor in a weight folder."""

    name: str
    shape: Shape
    dtype: str  # name that NumPy and TVM share, such as "uint32"
    shared: bool = False  # whether all rows of the parameter share it, so that it has no rows

    @property
    def nbytes(self) -> int:
        """Return the size without padding, in bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def cast(w: NDArray[np.float32], dtype: FloatDtype) -> NDArray[Any]:
    """Round w to `dtype`; values beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return w.astype(dtype)
