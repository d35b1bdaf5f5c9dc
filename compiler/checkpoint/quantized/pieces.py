"""Finds and checks the tensors of a quantized module before anything is read or allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing

from ..tensors import FLOATS, Checkpoint, TensorFile
from .bits import TABLES
from .matrix import Matrix

Shape = tuple[int | None, ...]  # None: any length
SCALES = ("F16", "BF16", "F32")


@dataclass(slots=True)
class Pieces:
    """The tensors of a checkpoint, from which a reader takes those of quantized modules.

    A tensor that does not fit is recorded; `require_none_wrong` reports all of them at once.
    """

    checkpoint: Checkpoint
    settings: Mapping[str, Any]  # the checkpoint's description of its quantization
    taken: set[str] = field(default_factory=set)
    matrices: dict[str, Matrix] = field(default_factory=dict)  # by the name of the weight
    problems: list[str] = field(default_factory=list)

    def modules(self, suffix: str) -> Iterator[str]:
        """Yield the names of modules, with a dot at the end, that have a tensor `suffix`."""
        for name in self.checkpoint.tensors:
            if name.endswith(f".{suffix}"):
                yield name.removesuffix(suffix)

    def has(self, name: str) -> bool:
        """Return whether the checkpoint has a tensor."""
        return name in self.checkpoint.tensors

    def dtype(self, name: str) -> str:
        """Return the safetensors name of a tensor's dtype, "" if there is no such tensor."""
        return self.checkpoint.tensors[name].dtype if self.has(name) else ""

    def take(self, name: str, dtypes: tuple[str, ...], shape: Shape) -> TensorFile | None:
        """Return a tensor with one of the dtypes and the shape, or record why it does not fit."""
        expected = (
            f"{' or '.join(dtypes)} [{', '.join('*' if n is None else str(n) for n in shape)}]"
        )
        tensor = self.checkpoint.tensors.get(name)
        if tensor is None:
            self.problems.append(f"missing: {name}, {expected}")
            return None
        self.taken.add(name)
        fits = len(tensor.shape) == len(shape) and all(
            n is None or n == m for n, m in zip(shape, tensor.shape, strict=True)
        )
        if tensor.dtype not in dtypes or not fits or 0 in tensor.shape:
            stored = f"{tensor.dtype} {list(tensor.shape)}"
            self.problems.append(f"{name} is {stored}, expected {expected}")
            return None
        if tensor.stop - tensor.offset != tensor.nbytes:
            self.problems.append(
                f"{name} has {tensor.stop - tensor.offset} bytes instead of {tensor.nbytes}"
            )
            return None
        return tensor

    def wrong(self, text: str) -> None:
        """Record a problem."""
        self.problems.append(text)

    def group(self, scales: str, count: int, columns: int) -> int:
        """Return the columns that share each of `count` scales, or record that they differ: 0."""
        if columns % count:
            self.wrong(f"{scales} has {count} groups for {columns} columns")
            return 0
        return columns // count

    def drop(self, *names: str) -> None:
        """Leave out tensors without effect on weights, such as scales of activations."""
        self.taken.update(name for name in names if self.has(name))

    def require_none_wrong(self, kind: str) -> None:
        """Check that all modules were complete.

        Raises:
            ModelError: lists what was missing or did not fit.
        """
        if self.problems:
            raise ModelError(
                f"{self.checkpoint.folder} is not a complete {kind} checkpoint:\n"
                f"{listing(self.problems)}\n"
                "Download it again, or use the model that was quantized, and --quant."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineModule:
    """A module of integers with a scale for each group; readers of layouts add how it is packed."""

    checkpoint: Checkpoint
    module: str  # its name with a dot at the end
    shape: tuple[int, int]
    bits: int
    group: int
    scale_dtype: str  # safetensors name

    def groups(self) -> NDArray[np.int64]:
        """Return the group of each column, int [in]; groups are consecutive."""
        return by_group(self.shape[1], self.group)


def numbers(checkpoint: Checkpoint, name: str, start: int = 0, stop: int | None = None) -> Any:
    """Return rows of a tensor of floats as float32, whatever its dtype, FP8 and E8M0 included."""
    dtype = checkpoint.tensors[name].dtype
    if dtype in FLOATS:
        return checkpoint.read(name, start, stop)
    return TABLES[dtype][checkpoint.read_raw(name, start, stop)]


def by_group(columns: int, group: int) -> NDArray[np.int64]:
    """Return the group of each column if groups are consecutive."""
    return np.arange(columns) // group
