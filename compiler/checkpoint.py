"""Read Hugging Face checkpoints of safetensors files, some rows of one tensor at a time.

Format: https://huggingface.co/docs/safetensors. Files are read, not mapped as that library does:
mapped pages would count as this process's memory, and a file cut short would end it with a signal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing
from wherry.json_file import parse_object, read_object

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
_STORED = _DTYPES | {"U8": np.dtype("u1")}  # that can be read, if not as numbers
_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16}
_BITS |= {"U16": 16, "I32": 32, "U32": 32, "F64": 64, "I64": 64, "U64": 64, "F4": 4}
_BITS |= {name: 8 * dtype.itemsize for name, dtype in _DTYPES.items()}
_FILE_NAME = re.compile(r"\w[\w.+ -]{0,200}", re.ASCII)
_LONGEST_HEADER = 100_000_000  # bytes, as the safetensors library has it


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
        wrong = [n for n in dict.fromkeys(names) if self.tensors[n].dtype not in _DTYPES]
        if wrong:
            raise ModelError(
                f"{self.folder} has weights that are neither F32, F16 nor BF16:\n"
                f"{listing(f'{n}: {self.tensors[n].dtype}' for n in wrong)}\n"
                "Quantized checkpoints are not read: use the original model, and --quant."
            )

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


def open_checkpoint(folder: Path) -> Checkpoint:
    """Read the headers of `model.safetensors`, or of the shards that its index names.

    Where there are none, of pytorch_model.bin in the same way.

    Raises:
        ModelError: no weights, missing shards or tensors, a damaged or truncated file.
        ToolchainError: weights that only PyTorch reads, which is not here.
    """
    from . import torch_checkpoint as pickled

    if found := _files(folder, SINGLE, INDEX):
        return _open(folder, *found)
    if found := _files(folder, pickled.SINGLE, pickled.INDEX):
        return pickled.open_torch(folder, *found)
    raise ModelError(_nothing_to_read(folder))


def _files(folder: Path, single: str, index: str) -> tuple[list[str], dict[str, str]] | None:
    """The names of the files with weights, and of each tensor its file if an index says it."""
    expected: dict[str, str] = {}
    if (folder / single).is_file():
        names = [single]
    elif (folder / index).is_file():
        expected = _read_index(folder / index)
        names = sorted(set(expected.values()))
    else:
        return None
    missing = [n for n in names if not (folder / n).is_file()]
    if missing:
        raise ModelError(
            f"{folder} lacks {len(missing)} of the {len(names)} files that {index} names:\n"
            f"{listing(missing)}\nDownload the model again."
        )
    return names, expected


def _open(folder: Path, names: Sequence[str], expected: Mapping[str, str]) -> Checkpoint:
    tensors: dict[str, TensorFile] = {}
    digest = hashlib.sha256()
    problems: list[str] = []
    for name in names:
        found, header = _read_header(folder / name)
        problems += [f"{t} is in {name} and in another file" for t in found if t in tensors]
        tensors |= found
        stat = (folder / name).stat()
        digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode() + header)
    problems += [f"{t} is not in {f}" for t, f in expected.items() if t not in tensors]
    if problems:
        raise ModelError(f"{folder / INDEX} is wrong:\n{listing(problems)}")
    files = tuple(folder / n for n in names)
    return Checkpoint(folder, MappingProxyType(tensors), files, digest.hexdigest())


def _nothing_to_read(folder: Path) -> str:
    others = sorted(
        p.name for p in folder.glob("*") if p.suffix in (".safetensors", ".bin", ".pth", ".gguf")
    )
    found = f"it has {', '.join(others[:5])}" if others else "it has no weights at all"
    return (
        f"{folder} has neither {SINGLE} nor {INDEX} nor pytorch_model.bin; {found}.\n"
        "Save the model as safetensors: model.save_pretrained(DIR) of transformers does."
    )


def _read_index(path: Path) -> dict[str, str]:
    try:
        weight_map = read_object(path)["weight_map"]
        items = {str(tensor): str(file) for tensor, file in weight_map.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ModelError(f"{path} is damaged: it has no readable weight_map ({e!r}).") from e
    outside = sorted({f for f in items.values() if not _FILE_NAME.fullmatch(f)})
    if outside:
        shown = listing(repr(f[:100]) for f in outside)
        raise ModelError(f"{path} names files that are no files of its folder:\n{shown}")
    return items


def _read_header(path: Path) -> tuple[dict[str, TensorFile], bytes]:
    size = path.stat().st_size
    with path.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(
                f"{path} ({size} bytes) is not a whole safetensors file; download it again."
            )
        header = f.read(length)
    try:
        entries = parse_object(header)
        entries.pop("__metadata__", None)
        tensors = {name: _tensor(path, 8 + length, e) for name, e in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ModelError(f"{path} has a damaged header ({e!r}); download it again.") from e
    end = _end(path, tensors, 8 + length)
    if end != size:
        raise ModelError(f"{path} has {size} bytes instead of {end}; download it again.")
    return tensors, header


def _end(path: Path, tensors: Mapping[str, TensorFile], base: int) -> int:
    """Where the last tensor ends. They lie one behind the other from `base` on.

    Raises:
        ModelError: there are gaps, or tensors that overlap.
    """
    end = base
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].offset, item[1].stop)):
        if tensor.offset != end:
            raise ModelError(
                f"{path} has a damaged header ({name} begins at byte {tensor.offset}, what is "
                f"before it ends at {end}); download it again."
            )
        end = tensor.stop
    return end


def _tensor(path: Path, base: int, entry: Mapping[str, Any]) -> TensorFile:
    if entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"an entry of {', '.join(entry)}")
    start, stop = entry["data_offsets"]
    shape = tuple(entry["shape"])
    numbers = [start, stop, *entry["shape"]]
    if any(type(n) is not int or not 0 <= n < 2**63 for n in numbers) or stop < start:
        raise ValueError(f"{entry['shape']} at {start} to {stop}")
    tensor = TensorFile(path, str(entry["dtype"]), shape, base + start, base + stop)
    if tensor.dtype in _DTYPES and tensor.nbytes != stop - start:
        raise ValueError(f"{shape} {tensor.dtype} in {stop - start} bytes")
    return tensor
