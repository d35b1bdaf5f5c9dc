"""Reads checkpoints in safetensors files: https://huggingface.co/docs/safetensors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wherry.base.json_file import parse_object
from wherry.errors import ModelError, listing
from wherry.hub.file_names import SAFETENSORS_INDEX

from .tensors import FLOATS, Checkpoint, TensorFile

_LONGEST_HEADER = 100_000_000  # bytes; the safetensors library's limit


def open_safetensors(folder: Path, names: Sequence[str], expected: Mapping[str, str]) -> Checkpoint:
    """Open the safetensors files of a folder; only their headers are read.

    Args:
        folder: the model folder.
        names: names of the weight files.
        expected: the file of each tensor according to the index; empty if there is no index.

    Raises:
        ModelError: a file is damaged or truncated, a tensor occurs twice, or tensors of the index
            are missing.
    """
    tensors: dict[str, TensorFile] = {}
    digest = hashlib.sha256()
    problems: list[str] = []
    for name in names:
        in_file, header = _read_header(folder / name)
        problems += [f"{t} is in {name} and in another file" for t in in_file if t in tensors]
        tensors |= in_file
        stat = (folder / name).stat()
        digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode() + header)
    problems += [f"{t} is not in {f}" for t, f in expected.items() if t not in tensors]
    if problems:
        raise ModelError(f"{folder / SAFETENSORS_INDEX} is wrong:\n{listing(problems)}")
    files = tuple(folder / n for n in names)
    return Checkpoint(folder, MappingProxyType(tensors), files, digest.hexdigest())


def _read_header(path: Path) -> tuple[dict[str, TensorFile], bytes]:
    """Return the tensors of a file by name, and the bytes of its JSON header.

    Raises:
        ModelError: the header is damaged, or does not match the file's size.
    """
    size = path.stat().st_size
    with path.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(
                f"{path} ({size} bytes) is not a complete safetensors file; download it again."
            )
        header = f.read(length)
    try:
        entries = parse_object(header, unique=True)
        entries.pop("__metadata__", None)
        tensors = {name: _tensor(path, 8 + length, e) for name, e in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ModelError(f"{path} has a damaged header ({e!r}); download it again.") from e
    end = _end(path, tensors, 8 + length)
    if end != size:
        raise ModelError(f"{path} has {size} bytes instead of {end}; download it again.")
    return tensors, header


def _end(path: Path, tensors: Mapping[str, TensorFile], base: int) -> int:
    """Return the offset after the last tensor, in bytes from the beginning of the file.

    The tensors must be contiguous from byte `base` on.

    Raises:
        ModelError: there are gaps between tensors, or tensors overlap.
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
    """Parse one entry of the header; its offsets are relative to byte `base` of the file.

    Raises:
        KeyError, TypeError, ValueError: the entry is malformed.
    """
    if entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"an entry of {', '.join(entry)}")
    start, stop = entry["data_offsets"]
    shape = tuple(entry["shape"])
    numbers = [start, stop, *entry["shape"]]
    if any(type(n) is not int or not 0 <= n < 2**63 for n in numbers) or stop < start:
        raise ValueError(f"{entry['shape']} at {start} to {stop}")
    tensor = TensorFile(path, str(entry["dtype"]), shape, base + start, base + stop)
    if tensor.dtype in FLOATS and tensor.nbytes != stop - start:
        raise ValueError(f"{shape} {tensor.dtype} in {stop - start} bytes")
    return tensor
