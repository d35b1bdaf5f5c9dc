"""Lists the cache: every entry with its size and last use. All entries can be recreated.

    models/NAME-SCHEME-TARGET-KEY   compiled; its weights are hard links
    weights/NAME-SCHEME-PLACE       converted; with "gguf" for a scheme, the rest of a GGUF file;
                                    with "head", the rest of a model with a draft head
    packed/KEY                      weights in the layout of a library's kernels
    hub/ORG--NAME/COMMIT            downloads
    programs/KIND                   programs that a device's driver compiled
    verified/, locks/, running/     small notes

`tools` belongs to the user and is never removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wherry.artifact.manifest import Manifest, read_manifest
from wherry.base import settings
from wherry.errors import ArtifactError

KEPT_SECONDS = 30 * 24 * 3600  # how long an unused entry stays by default
_CODE_DIGITS = 6


@dataclass(slots=True, kw_only=True)
class Entry:
    """An entry that can be removed separately."""

    kind: str  # kind of entry: "download", "weights", "model", "packed", "programs"
    name: str  # name of the entry's model, or ""
    about: str  # description: scheme, target, commit
    path: Path
    bytes: int  # bytes on disk; a file that entries share counts for the first of them
    last_used: float  # seconds since 1970
    manifest: Manifest | None = None  # manifest of a complete compiled model

    @property
    def short_name(self) -> str:
        """Return the model's name as a folder name: letters, digits and "-_."."""
        return safe(self.name)


def safe(name: str) -> str:
    """Return `name` as part of a folder name, with "-" for unsafe characters."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)


def entries() -> list[Entry]:
    """List all entries: downloads first, then weights and models."""
    cache = settings.cache_dir()
    seen: set[tuple[int, int]] = set()
    result = [
        *_entries_of(cache.glob("hub/[!.]*/[!.]*"), _download, seen),
        *_entries_of(cache.glob("weights/[!.]*"), _weights, seen),
        *_entries_of(cache.glob("models/[!.]*"), _model, seen),
        *_entries_of(cache.glob("packed/[!.]*"), lambda p: ("packed", "", "", None), seen),
        *_entries_of(cache.glob("programs/[!.]*"), lambda p: ("programs", "", p.name, None), seen),
    ]
    names = {e.short_name: e.name for e in result if e.kind in ("download", "model")}
    for entry in result:
        entry.name = names.get(entry.name, entry.name)
    return result


def key_of(code: str, inputs: str) -> str:
    """Return a compiled folder's key from two hashes: the compiler's sources, and its inputs."""
    return code[:_CODE_DIGITS] + inputs[:12]


def is_compiled_by(code: str, key: str) -> bool:
    """Return whether a compiler with the sources hash `code` wrote the folder with this `key`."""
    return key.startswith(code[:_CODE_DIGITS])


_Facts = tuple[str, str, str, Manifest | None]  # kind, name, description, manifest


def _entries_of(
    paths: Iterator[Path], facts: Callable[[Path], _Facts], seen: set[tuple[int, int]]
) -> list[Entry]:
    result = []
    for path in sorted(paths):
        if not path.is_dir() or path.name == "refs":
            continue
        kind, name, about, manifest = facts(path)
        size, newest = _measure(path, seen)
        used = newest if kind == "programs" else path.stat().st_mtime
        entry = Entry(kind=kind, name=name, about=about, path=path, bytes=size, last_used=used)
        entry.manifest = manifest
        result.append(entry)
    return result


def _download(path: Path) -> _Facts:
    return "download", path.parent.name.replace("--", "/", 1), path.name[:8], None


def _weights(path: Path) -> _Facts:
    name, _, rest = path.name.rpartition("-")[0].rpartition("-")
    return "weights", name or path.name, rest, None


def _model(path: Path) -> _Facts:
    try:
        manifest = read_manifest(path)
    except ArtifactError:
        return "model", path.name, "damaged", None
    about = f"{manifest.quantization} {manifest.target['name']}"
    return "model", manifest.name, about, manifest


def _measure(folder: Path, seen: set[tuple[int, int]]) -> tuple[int, float]:
    """Return bytes of the files that were not counted yet, and the time of the last access."""
    size, newest = 0, 0.0
    for _path, stat in files(folder):
        newest = max(newest, stat.st_mtime, stat.st_atime)
        inode = (stat.st_dev, stat.st_ino)
        if inode not in seen:
            seen.add(inode)
            size += stat.st_size
    return size, newest


def files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield all files of a folder; files that vanish meanwhile are left out."""
    for here, _, names in os.walk(folder):
        for name in names:
            path = Path(here, name)
            try:
                yield path, path.lstat()
            except OSError:
                continue
