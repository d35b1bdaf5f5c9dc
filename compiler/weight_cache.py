"""Writes and reads folders of weights in the layout of TVM and mlc-llm.

A folder has `tensor-cache.json` (the index) and `params_shard_*.bin`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.artifact.manifest import INDEX, SHARDS
from wherry.errors import ArtifactError
from wherry.quant.stored import StoredTensor

SHARD_BYTES = 32 << 20
ALIGNMENT = 64  # bytes; shards are memory-mapped, and kernels load whole vectors


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor and its place in its shard."""

    tensor: StoredTensor
    offset: int  # bytes from the beginning of the shard


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard file. `parameters` are indices into the groups passed to `lay_out`."""

    name: str
    parameters: tuple[int, ...]
    tensors: tuple[Placed, ...]
    nbytes: int


def lay_out(
    groups: Sequence[Sequence[StoredTensor]],
    apart: Sequence[Sequence[StoredTensor]] = (),
    limit: int = SHARD_BYTES,
) -> tuple[Shard, ...]:
    """Assign tensors to shards of at most `limit` bytes; the tensors of a group stay together.

    A group larger than `limit` gets its own shard. Those of `apart` follow, in shards of their own.
    """
    shards: list[Shard] = []
    members: list[int] = []
    placed: list[Placed] = []
    end = 0

    def close() -> None:
        nonlocal members, placed, end
        if members:
            name = SHARDS.replace("*", str(len(shards)))
            shards.append(Shard(name, tuple(members), tuple(placed), end))
        members, placed, end = [], [], 0

    for i, group in enumerate([*groups, *apart]):
        if i == len(groups) or (members and end + sum(_aligned(t.nbytes) for t in group) > limit):
            close()
        for tensor in group:
            start = _aligned(end)
            placed.append(Placed(tensor, start))
            end = start + tensor.nbytes
        members.append(i)
    close()
    return tuple(shards)


def _aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def index_json(shards: Iterable[Shard], parameter_count: int) -> str:
    """Return the content of `tensor-cache.json`; `parameter_count` is before quantization."""
    records = [_shard_record(shard) for shard in shards]
    total = sum(r["nbytes"] for shard in records for r in shard["records"])
    metadata = {
        "ParamSize": sum(len(shard["records"]) for shard in records),
        "ParamBytes": total,
        "BitsPerParam": total * 8 / max(parameter_count, 1),
    }
    return json.dumps({"metadata": metadata, "records": records}, indent=2) + "\n"


def _shard_record(shard: Shard) -> dict[str, Any]:
    return {
        "dataPath": shard.name,
        "format": "raw-shard",
        "nbytes": shard.nbytes,
        "records": [
            {
                "name": p.tensor.name,
                "shape": list(p.tensor.shape),
                "dtype": p.tensor.dtype,
                "format": "raw",
                "nbytes": p.tensor.nbytes,
                "byteOffset": p.offset,
            }
            for p in shard.tensors
        ],
    }


class StoredTensors:
    """The tensors of a weight folder of Wherry or mlc-llm, which are read one at a time.

    Tensors that were shortened for storage ("f32-to-bf16") become float32 again.

    Args:
        folder: has the index and the shards.

    Raises:
        ArtifactError: there is no index, or a shard is missing or truncated.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / INDEX
        if not path.is_file():
            raise ArtifactError(f"{folder} has no {INDEX}. Convert the model again.")
        self._records: dict[str, tuple[Path, dict[str, Any]]] = {}
        for shard in json.loads(path.read_text())["records"]:
            file = folder / shard["dataPath"]
            if not file.is_file() or file.stat().st_size != shard["nbytes"]:
                size = file.stat().st_size if file.is_file() else "no"
                raise ArtifactError(
                    f"{file} has {size} bytes, not {shard['nbytes']}. Convert again."
                )
            self._records |= {record["name"]: (file, record) for record in shard["records"]}

    @property
    def names(self) -> list[str]:
        """Return the names of all tensors, in the order of storage."""
        return list(self._records)

    def read(self, name: str) -> NDArray[Any]:
        """Read one tensor.

        Raises:
            ArtifactError: its format is unknown.
        """
        return _load(*self._records[name])


def load_state(folder: Path) -> dict[str, NDArray[Any]]:
    """Load all tensors of a weight folder into memory; errors as in `StoredTensors`."""
    stored = StoredTensors(folder)
    return {name: stored.read(name) for name in stored.names}


def _load(file: Path, record: dict[str, Any]) -> NDArray[Any]:
    shape, dtype = tuple(record["shape"]), np.dtype(record["dtype"])
    if record["format"] == "raw":
        flat = np.fromfile(file, dtype, prod(shape), offset=record["byteOffset"])
        return flat.reshape(shape)
    if record["format"] == "f32-to-bf16" and dtype == np.float32:
        short = np.fromfile(file, np.uint16, prod(shape), offset=record["byteOffset"])
        return (short.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(shape)
    raise ArtifactError(
        f"{file}: {record['name']} has format {record['format']!r} of {dtype}; "
        "known are 'raw', and 'f32-to-bf16' of float32."
    )
