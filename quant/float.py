"""Schemes without quantization: all parameters are stored in one float dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .stored import FloatDtype, Shape, StoredTensor, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatScheme:
    """The scheme that stores each parameter as one tensor of `float_dtype` under its own name."""

    name: str
    float_dtype: FloatDtype

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Return False, because the scheme quantizes no parameter."""
        return False

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """Return one tensor with the parameter's name and shape."""
        return (StoredTensor(name, tuple(shape), self.float_dtype),)

    def encode(self, w: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Round w to `float_dtype`, to nearest, ties to even."""
        return {"weight": cast(w, self.float_dtype)}

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Convert the stored weight to float32, exactly."""
        return stored["weight"].astype(np.float32)

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Return the TIR expression of one element, converted to float32."""
        return stored[0][row, column].astype("float32")

    def kernel_spec(self) -> dict[str, Any]:
        """Return the fields of a kernel's `LinearSpec` that depend on the scheme."""
        names = {"float32": "f32", "float16": "f16"}
        return {"scheme": names[self.float_dtype], "scale_dtype": None, "group": 32}


FLOATS = (
    FloatScheme(name="q0f32", float_dtype="float32"),
    FloatScheme(name="q0f16", float_dtype="float16"),
)
