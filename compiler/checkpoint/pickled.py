"""Reads checkpoints that PyTorch pickled: pytorch_model.bin, or the shards in its index.

PyTorch itself reads the files. With `weights_only` it accepts tensors only and runs no code; it
memory-maps the files, so rows are read when they are needed. PyTorch is an optional dependency:
`wherry[torch]`.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.base import extras
from wherry.errors import ModelError, ToolchainError, listing
from wherry.hub.file_names import PICKLED_INDEX

from .tensors import Checkpoint, TensorFile

_NAMES = {"torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16"}


@dataclass(frozen=True, slots=True)
class TorchCheckpoint(Checkpoint):
    """The tensors of a folder whose files PyTorch memory-maps."""

    loaded: Mapping[str, Any] = field(default_factory=dict, repr=False)  # values: torch.Tensor

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See `Checkpoint.read_raw`."""
        import torch

        tensor = self.loaded[name]
        rows = tensor[start:stop] if tensor.dim() else tensor
        if tensor.dtype == torch.bfloat16:
            bits: NDArray[Any] = rows.contiguous().view(torch.int16).numpy().view(np.uint16)
            return bits
        array: NDArray[Any] = rows.contiguous().numpy()
        return array


def open_pickled(folder: Path, names: Sequence[str], expected: Mapping[str, str]) -> Checkpoint:
    """Memory-map the pickled weight files of a folder.

    Args:
        folder: the model folder.
        names: names of the weight files.
        expected: the file of each tensor according to the index; empty if there is no index.

    Raises:
        ToolchainError: PyTorch is not installed.
        ModelError: a file is damaged or contains other objects than tensors, a tensor occurs
            twice, or tensors of the index are missing.
    """
    if not extras.installed("torch"):
        raise ToolchainError(
            f"{folder / names[0]} is pickled, which only PyTorch reads safely. Type: "
            f"{extras.TORCH}; or take a model that has safetensors."
        )
    loaded: dict[str, Any] = {}
    tensors: dict[str, TensorFile] = {}
    digest = hashlib.sha256()
    problems: list[str] = []
    for name in names:
        for key, tensor in _load(folder / name).items():
            if key in loaded:
                problems.append(f"{key} is in {name} and in another file")
            loaded[key] = tensor
            size = tensor.numel() * tensor.element_size()
            dtype = _NAMES.get(str(tensor.dtype), str(tensor.dtype).removeprefix("torch."))
            tensors[key] = TensorFile(folder / name, dtype, tuple(tensor.shape), 0, size)
        stat = (folder / name).stat()
        digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    problems += [f"{t} is not in {f}" for t, f in expected.items() if t not in loaded]
    if problems:
        raise ModelError(f"{folder / PICKLED_INDEX} is wrong:\n{listing(problems)}")
    files = tuple(folder / name for name in names)
    return TorchCheckpoint(folder, MappingProxyType(tensors), files, digest.hexdigest(), loaded)


def _load(path: Path) -> dict[str, Any]:
    """Load the tensors of a file to the CPU, by name.

    Zip archives, PyTorch's format since 1.6 (2020), are memory-mapped; older files are read whole.
    """
    import torch

    try:
        mapped = zipfile.is_zipfile(path)
        contents = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as e:  # torch.load raises many unrelated exception types
        raise ModelError(
            f"{path} cannot be read ({_first_line(e)}). It is damaged, or holds more than tensors, "
            "which may be programs: take a model that has safetensors."
        ) from e
    others = [] if isinstance(contents, dict) else ["(the whole file)"]
    others = others or [str(k) for k, v in contents.items() if not isinstance(v, torch.Tensor)]
    if others:
        raise ModelError(f"{path} holds values that are not tensors:\n{listing(others)}")
    tensors: dict[str, Any] = {str(name): tensor.detach() for name, tensor in contents.items()}
    return tensors


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
