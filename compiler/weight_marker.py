"""Reads and writes wherry-weights.json: what a complete folder of converted weights has.

`convert.py` writes it last, so a folder without it is incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from wherry.artifact import integrity
from wherry.artifact.manifest import FileRecord, digest
from wherry.base.json_file import read_object
from wherry.base.temporary import write_atomically
from wherry.quant.plan import Own, from_json

MARKER = "wherry-weights.json"
# Version of MARKER's format; also changes if the same source would be converted differently.
SCHEMA_VERSION = 2


def files_of(out: Path) -> dict[str, FileRecord]:
    """Return the files that `convert` wrote to a folder, with their hashes, without reading them.

    The result is {} if the folder is incomplete.
    """
    marker = read_record(out / MARKER)
    if marker.get("schema") != SCHEMA_VERSION:
        return {}
    return {name: FileRecord(**r) for name, r in marker["files"].items()}


def scheme_of(out: Path) -> str:
    """Return the name of the quantization scheme of a complete folder."""
    return str(read_record(out / MARKER)["scheme"])


def content_of(out: Path) -> dict[str, Any]:
    """Return what a complete folder has, whichever files it was made of: equal weights are equal.

    A checkpoint is known by its files' times, so it is another one after it was copied.
    """
    origin = ("source", "job", "tokenizer", "allocation", "digest")
    return {n: v for n, v in read_record(out / MARKER).items() if n not in origin}


def is_converted(out: Path) -> bool:
    """Return whether `out` contains a complete, undamaged conversion."""
    files = files_of(out)
    return bool(files) and not integrity.damaged(out, files)


def own_of(out: Path) -> Own:
    """Return the parameters of a complete folder that have schemes of their own."""
    return from_json(read_record(out / MARKER).get("own", {}))


def label_of(out: Path) -> str:
    """Return the name of a complete folder's encoding that users see."""
    marker = read_record(out / MARKER)
    return str(marker.get("label", marker["scheme"]))


def read_record(path: Path) -> Mapping[str, Any]:
    """Read the JSON file `path`; if it is missing or its digest is wrong, return {}.

    A file that has not changed is parsed once: a load asks for several of its fields.
    """
    try:
        at = path.stat()
        return _verified(path.absolute(), at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=32)
def _verified(path: Path, *_: int) -> Mapping[str, Any]:
    marker = read_object(path)
    return marker if marker.get("digest") == digest(marker) else {}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON file that `read_record` can verify: the record and its digest."""
    signed = {**record, "digest": digest(record)}
    write_atomically(path, json.dumps(signed, indent=2, sort_keys=True) + "\n")
