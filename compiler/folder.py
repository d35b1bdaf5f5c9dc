"""A model folder in Hugging Face's layout: which of its files matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wherry.errors import ModelError

# What a compiled model takes along beside the weights, as shell patterns.
SIDE_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template*",
)


def side_files(folder: Path) -> tuple[Path, ...]:
    """The files of `folder` that belong to a model besides its weights, by name."""
    found = {p for pattern in SIDE_FILES for p in folder.glob(pattern) if p.is_file()}
    return tuple(sorted(found))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelError: the file is missing or is none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ModelError(f"{path} cannot be read: {e.strerror}.") from e
    except ValueError as e:
        raise ModelError(f"{path} is not JSON: {e}.") from e
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds {type(found).__name__}, not an object.")
    return found
