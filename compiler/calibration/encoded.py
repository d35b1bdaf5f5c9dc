"""The folder of encoded weights from which an interrupted calibration resumes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Stored = Mapping[str, NDArray[Any]]


class Encoded:
    """Encoded weights in a folder, one file each.

    Args:
        folder: the folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.npz"

    def has(self, name: str) -> bool:
        """Return whether a parameter has been encoded."""
        return self._path(name).is_file()

    def read(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the stored arrays of a parameter by their full names."""
        with np.load(self._path(name), allow_pickle=False) as archive:
            return {stored: archive[stored] for stored in archive.files}

    def write(self, name: str, arrays: Stored) -> None:
        """Store the arrays of a parameter."""
        path = self._path(name)
        partial = path.with_suffix(".partial")
        named: dict[str, Any] = dict(arrays)
        with partial.open("wb") as f:
            np.savez(f, **named)
        partial.replace(path)

    def remove(self) -> None:
        """Remove the folder, when the shards have its content."""
        shutil.rmtree(self._folder, ignore_errors=True)
