"""Measures what it changes to encode a quantized checkpoint's weights anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.quant.scheme import Encoder

# Rows of a block that are decoded again. A block has thousands, whose errors are much alike.
_SAMPLE = 16


@dataclass(slots=True)
class Rounding:
    """The squared error of re-encoded weights, estimated from some rows of each block."""

    error: float = 0.0
    power: float = 0.0  # sum of the squared weights

    def add(
        self,
        scheme: Encoder,
        rows: NDArray[np.float32],
        stored: Mapping[str, NDArray[Any]],
        columns: int,
    ) -> None:
        """Add a block: its rows float32 [n, ..., columns], and what stores them by suffix."""
        step = max(1, len(rows) // _SAMPLE)
        some = rows[::step]
        decoded = scheme.decode({name: array[::step] for name, array in stored.items()}, columns)
        share = len(rows) / len(some)
        with np.errstate(invalid="ignore", over="ignore"):  # the conversion finds such numbers
            self.error += share * float(np.square(decoded - some, dtype=np.float64).sum())
            self.power += share * float(np.square(some, dtype=np.float64).sum())

    @property
    def relative(self) -> float:
        """Return the root mean square of the error over that of the weights; 0 without weights."""
        return float(np.sqrt(self.error / self.power)) if self.power else 0.0
