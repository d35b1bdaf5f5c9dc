"""Fills a compiled folder's shards with random weights: small scales, norms near one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 1 << 22  # random numbers to draw; a larger tensor repeats them


class Filler:
    """Draws random numbers once, and repeats them in tensors of any size."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.bits = rng.integers(0, 1 << 32, BLOCK, dtype=np.uint32)
        self.normal = rng.standard_normal(BLOCK, dtype=np.float32)
        # (dtype, mean, width) -> random numbers
        self.drawn: dict[tuple[str, float, float], np.ndarray] = {}

    def tensor(self, name: str, shape: list[int], dtype: str) -> np.ndarray:
        """Return random values of a stored tensor, chosen by its name."""
        count = int(np.prod(shape))
        if dtype == "uint32":
            return np.resize(self.bits, count)
        if name.endswith("scale"):  # scales that give 4-bit or 8-bit weights of about 0.02
            return self._numbers(count, dtype, 0.003, 0.0003)
        if "norm" in name:
            return self._numbers(count, dtype, 1.0, 0.05)
        return self._numbers(count, dtype, 0.0, 0.02)

    def _numbers(self, count: int, dtype: str, centre: float, width: float) -> np.ndarray:
        key = dtype, centre, width
        if key not in self.drawn:
            self.drawn[key] = (centre + width * self.normal).astype(dtype)
        return np.resize(self.drawn[key], count)


def fill(folder: Path, seed: int = 0) -> int:
    """Write the shards of `tensor-cache.json` that are missing; return the bytes of all."""
    index: dict[str, Any] = json.loads((folder / "tensor-cache.json").read_text())
    filler, written = Filler(seed), 0
    for shard in index["records"]:
        written += shard["nbytes"]
        path, partial = folder / shard["dataPath"], folder / f".{shard['dataPath']}.partial"
        if path.exists():
            continue
        with partial.open("wb") as file:
            file.truncate(shard["nbytes"])
            for tensor in shard["records"]:
                file.seek(tensor["byteOffset"])
                file.write(filler.tensor(tensor["name"], tensor["shape"], tensor["dtype"]).data)
        partial.rename(path)
    return written
