"""What readers of quantized checkpoints make of a module's tensors: one matrix, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AffineRows:
    """Rows of a matrix as integers, with a scale and a zero point or minimum for each group.

    w[r, c] = (q[r, c] - zero[r, g]) * scale[r, g], or, if there are minima,
    w[r, c] = q[r, c] * scale[r, g] + minimum[r, g], where g = groups[c].
    """

    q: NDArray[np.uint8]  # [rows, in]
    scale: NDArray[np.float32]  # [rows, number of groups]
    zero: NDArray[np.uint8] | None  # [rows, number of groups]; None: there are minima
    minimum: NDArray[np.float32] | None = None

    def floats(self, groups: NDArray[np.int64]) -> NDArray[np.float32]:
        """Dequantize to float32 [rows, in]; `groups` int [in]: the group of each column."""
        q, scale = self.q.astype(np.float32), self.scale[:, groups]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # the conversion finds what is not finite
            if self.zero is not None:
                return (q - self.zero.astype(np.float32)[:, groups]) * scale
            assert self.minimum is not None
            return q * scale + self.minimum[:, groups]


class Matrix(Protocol):
    """A quantized matrix [out, in] of a checkpoint."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return (out, in)."""

    @property
    def kind(self) -> str:
        """Return a name of the format for messages, such as "GPTQ 4-bit, groups of 128"."""

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return rows [start, stop), dequantized to float32 [stop - start, in].

        Raises:
            ModelError: a file is shorter than its header says, or its numbers contradict it.
        """


@runtime_checkable
class AffineMatrix(Matrix, Protocol):
    """A matrix of integers with a scale for each group of columns."""

    @property
    def bits(self) -> int:
        """Return the number of bits of an integer."""

    @property
    def group(self) -> int:
        """Return the number of columns of a group; without act-order, they are consecutive."""

    @property
    def scale_dtype(self) -> str:
        """Return the safetensors name of the scales' dtype."""

    def groups(self) -> NDArray[np.int64]:
        """Return the group of each column, int [in]."""

    def rows(self, start: int, stop: int) -> AffineRows:
        """Return rows [start, stop)."""

    def scales(self) -> tuple[NDArray[np.float32], NDArray[Any] | None]:
        """Return all scales and zero points [out, groups], without reading the integers.

        The second is None for minima.
        """
