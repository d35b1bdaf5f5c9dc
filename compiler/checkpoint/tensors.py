"""The tensors of a checkpoint, some rows of one at a time.

Files are read, not mapped: mapped pages would count as this process's memory, and a file cut short
would end it with a signal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing

# By safetensors' names.
FLOATS: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
_STORED = FLOATS | {"U8": np.dtype("u1")}  # that can be read, if not as numbers
_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16}
_BITS |= {"U16": 16, "I32": 32, "U32": 32, "F64": 64, "I64": 64, "U64": 64, "F4": 4}
_BITS |= {name: 8 * dtype.itemsize for name, dtype in FLOATS.items()}


@dataclass(frozen=True, slots=True)
class TensorFile:
    """Where one tensor lies."""

    path: Path
    dtype: str  # as safetensors spells it
    shape: tuple[int, ...]
    offset: int  # bytes from the beginning of the file
    stop: int  # where it ends, likewise

    @property
    def nbytes(self) -> int:
        """Size in the file."""
        return prod(self.shape) * _BITS.get(self.dtype, 8) // 8


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tensors of a folder. Nothing but headers is in memory."""

    folder: Path
    tensors: Mapping[str, TensorFile]
    files: tuple[Path, ...]
    fingerprint: str  # changes if a file's name, size, time of change or header does

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """By name."""
        return {name: t.shape for name, t in self.tensors.items()}

    def require_floats(self, names: Iterable[str]) -> None:
        """Check that `names` can be read.

        Raises:
            ModelError: listing those of another dtype than F32, F16, BF16.
        """
        wrong = [n for n in dict.fromkeys(names) if self.tensors[n].dtype not in FLOATS]
        if wrong:
            raise ModelError(
                f"{self.folder} has weights that are neither F32, F16 nor BF16:\n"
                f"{listing(f'{n}: {self.tensors[n].dtype}' for n in wrong)}\n"
                "Quantized checkpoints are not read: use the original model, and --quant."
            )

    def told(self, scheme: str) -> str | None:
        """Say in a line what is lost if all is encoded in this scheme; None: nothing to say."""
        return None

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """Rows [start, stop) of a tensor as float32; a scalar has one row."""
        raw = self.read_raw(name, start, stop)
        return widen(raw, self.tensors[name].dtype)

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read in the file's dtype, BF16 as uint16; see `read` and `widen`.

        Raises:
            ModelError: the file has become shorter.
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
    """What `read_raw` gave -> float32, exact."""
    if dtype == "BF16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.astype(np.float32, copy=False)
