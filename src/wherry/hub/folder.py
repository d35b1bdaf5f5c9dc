"""Reads the relevant files of a model folder in Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wherry.artifact.manifest import SIDE_FILES
from wherry.base.json_file import read_object
from wherry.errors import ModelError


def side_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of `folder` that belong to a model besides its weights, sorted by name."""
    found = {p for pattern in SIDE_FILES for p in folder.glob(pattern) if p.is_file()}
    return tuple(sorted(found))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: the file is missing, or is no JSON object.
    """
    try:
        return read_object(path)
    except OSError as e:
        raise ModelError(f"{path} cannot be read: {e.strerror}.") from e
    except ValueError as e:
        raise ModelError(f"{path} is not JSON, or no object: {e}.") from e
