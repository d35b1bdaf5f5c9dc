"""Tensors of a checkpoint, which are read a range of rows at a time.

Files are read rather than memory-mapped: mapped pages would count as memory of this process, and
access to a file that was truncated in the meantime would kill it with SIGBUS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing
from wherry.models.weights.plan import ParameterPlan

from .kept import KeptRows

# Floating-point dtypes by their safetensors names. BF16, which NumPy lacks, is read as its bits.
FLOATS: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
# Dtypes that `read_raw` supports. Floats of 8 bits are read as their bits.
_STORED = FLOATS | {"U8": np.dtype("u1"), "I8": np.dtype("i1")}
_STORED |= {name: np.dtype("u1") for name in ("F8_E4M3", "F8_E5M2", "F8_E8M0")}
_STORED |= {"I32": np.dtype("<i4"), "U32": np.dtype("<u4"), "I64": np.dtype("<i8")}
_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16}
_BITS |= {"U16": 16, "I32": 32, "U32": 32, "F64": 64, "I64": 64, "U64": 64, "F4": 4}
_BITS |= {name: 8 * dtype.itemsize for name, dtype in FLOATS.items()}


@dataclass(frozen=True, slots=True)
class TensorFile:
    """The location, dtype and shape of one tensor in a file."""

    path: Path
    dtype: str  # the safetensors name, such as "BF16"
    shape: tuple[int, ...]
    offset: int  # first byte, from the beginning of the file
    stop: int  # byte after the last one, from the beginning of the file

    @property
    def nbytes(self) -> int:
        """Return the size in the file, in bytes."""
        return prod(self.shape) * _BITS.get(self.dtype, 8) // 8


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tensors of a model folder. Only their headers are in memory."""

    folder: Path
    tensors: Mapping[str, TensorFile]
    files: tuple[Path, ...]
    fingerprint: str  # hash of the files' names, sizes, modification times and headers

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors by name."""
        return {name: t.shape for name, t in self.tensors.items()}

    def require_floats(self, names: Iterable[str]) -> None:
        """Check that the tensors `names` have a dtype that `read` converts to float32.

        Raises:
            ModelError: lists the tensors whose dtype is not F32, F16 or BF16.
        """
        wrong = [n for n in dict.fromkeys(names) if self.tensors[n].dtype not in FLOATS]
        if wrong:
            raise ModelError(
                f"{self.folder} has weights that are neither F32, F16 nor BF16:\n"
                f"{listing(f'{n}: {self.tensors[n].dtype}' for n in wrong)}\n"
                "config.json does not say how they are quantized: use the original model, and "
                "--quant."
            )

    def precision_note(self, scheme: str, kept: Collection[str] = ()) -> str | None:
        """Return one line on the precision that the scheme loses; None: it loses nothing.

        The tensors `kept` stay as they are.
        """
        return None

    def loses(self, name: str, scheme: str) -> bool:
        """Return whether a tensor is quantized in a way whose values a scheme does not have."""
        return False

    def kept(
        self, plan: ParameterPlan, schemes: Collection[str] | None = None
    ) -> Sequence[KeptRows]:
        """Return the rows of a parameter, in order, as the checkpoint has encoded them.

        Where several schemes have the same values, the smallest of those named in `schemes` is
        taken, or of all if `schemes` is None or names none of them. The result is empty if the
        conversion has to encode the parameter's floats: they are stored as floats, the plan changes
        values or cuts rows, or no scheme has their encoding.
        """
        return ()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """Return rows [start, stop) of a tensor as float32; a scalar counts as one row."""
        raw = self.read_raw(name, start, stop)
        return widen(raw, self.tensors[name].dtype)

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return rows [start, stop) of a tensor in the file's dtype, BF16 as uint16.

        `widen` converts the result to float32.

        Raises:
            ModelError: the file is shorter than its header says.
        """
        tensor = self.tensors[name]
        dtype = _STORED[tensor.dtype]
        rows = tensor.shape[0] if tensor.shape else 1
        stop = rows if stop is None else stop
        row_bytes = prod(tensor.shape[1:]) * dtype.itemsize
        shape = (stop - start, *tensor.shape[1:]) if tensor.shape else ()
        out = np.empty(shape, dtype)
        with tensor.path.open("rb", buffering=0) as f:
            f.seek(tensor.offset + start * row_bytes)
            view = out.reshape(-1).view(np.uint8).data
            done = 0
            while done < len(view):
                count = f.readinto(view[done:])
                if not count:
                    raise ModelError(f"{tensor.path} ends inside {name}; download it again.")
                done += count
        return out


def widen(raw: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    """Convert a result of `read_raw` to float32, exactly; `dtype`: its safetensors name."""
    if dtype == "BF16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.astype(np.float32, copy=False)
