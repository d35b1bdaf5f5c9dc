"""Reads JSON from untrusted files: every defect is reported as a ValueError."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LARGEST = 64 << 20  # bytes; the longest known index of a checkpoint has about 10 MB
DEEPEST = 100  # nested brackets, at most


def parse_object(text: bytes | str, *, unique: bool = False) -> dict[str, Any]:
    """Parse a JSON object.

    Args:
        text: the object.
        unique: refuse names that occur twice, of which Python takes the last and others the first.

    Raises:
        ValueError: the text is not UTF-8, not JSON, no object, or nested too deep.
    """
    hook = _distinct if unique else None
    try:
        value = json.loads(text if isinstance(text, str) else text.decode(), object_pairs_hook=hook)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}, not an object")
    _check_depth(value)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)[:200]!r} occurs twice")
    return value


_TOO_DEEP = f"brackets nest more than {DEEPEST} levels deep"


def _check_depth(value: dict[str, Any]) -> None:
    """Raise if the value is nested too deep, because later steps (printing, writing) recurse."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: see `parse_object`, or the file is larger than 64 MiB.
    """
    size = path.stat().st_size
    if size > LARGEST:
        raise ValueError(f"{size} bytes, more than the {LARGEST} that are read of such a file")
    return parse_object(path.read_bytes())
