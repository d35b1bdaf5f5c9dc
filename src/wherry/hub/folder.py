"""Reads the relevant files of a model folder in Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wherry.artifact.manifest import FURTHER_TEMPLATES, SIDE_FILES
from wherry.base.json_file import read_object
from wherry.errors import ModelError


def side_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of `folder` that belong to a model besides its weights, sorted by name."""
    files = {p for pattern in SIDE_FILES for p in folder.glob(pattern) if p.is_file()}
    return tuple(sorted(files))


def further_templates(folder: Path) -> dict[str, bytes]:
    """Return the chat templates in a folder of their own, by the names of a compiled model's files.

    `additional_chat_templates/tool_use.jinja` becomes `chat_template.tool_use.jinja`, because the
    files of a compiled model are in no folders.
    """
    files = sorted(folder.glob(FURTHER_TEMPLATES))
    return {f"chat_template.{path.name}": path.read_bytes() for path in files}


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


def optional_json(path: Path) -> dict[str, Any]:
    """Read a JSON object as `read_json`; {} if there is no such file."""
    return read_json(path) if path.is_file() else {}
