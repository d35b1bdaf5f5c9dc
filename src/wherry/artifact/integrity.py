"""Remembers verified files, so that gigabytes are not hashed at every start.

A verified file is stamped with its inode, size and times, including the change time, which cannot
be set. It is not hashed again until the stamp differs or the machine restarts; after a restart it
is hashed, or checked as it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from wherry.base import settings
from wherry.base.json_file import read_object
from wherry.base.temporary import write_atomically

from .manifest import (
    FileRecord,
    Manifest,
    file_problems,
    raise_for,
    read_manifest,
)

_log = logging.getLogger(__name__)


def damaged(
    folder: Path,
    files: Mapping[str, FileRecord],
    *,
    lazily: Collection[str] = (),
    thorough: bool = False,
) -> dict[str, str]:
    """Find missing, truncated or changed `files` in `folder`: name -> problem.

    Args:
        folder: the folder that contains the files.
        files: the expected sizes and hashes.
        lazily: files that are not hashed again after a restart of the machine.
        thorough: hash all files, whatever the stamps say.
    """
    before = {name: _identity(folder / name) for name in files}
    stamp = _stamp(folder)
    kept = {} if thorough else _read(stamp)
    boot = _boot()
    stamped = kept.get("files", {})
    known = {
        name
        for name, identity in before.items()
        if identity is not None
        and stamped.get(name) == [*identity, files[name].sha256]
        and (name in lazily or kept.get("boot") == boot)
    }
    problems = file_problems(folder, files, known)
    if known != set(files):
        intact = {
            name: [*identity, files[name].sha256]
            for name, identity in before.items()
            if identity is not None and name not in problems
        }
        _write(stamp, {"boot": boot, "files": intact})
    return problems


def keep(folder: Path, files: Mapping[str, FileRecord]) -> None:
    """Stamp `files` that were just written or hashed, so that their first use reads no byte."""
    identities = {name: _identity(folder / name) for name in files}
    stamped = {n: [*identity, files[n].sha256] for n, identity in identities.items() if identity}
    _write(_stamp(folder), {"boot": _boot(), "files": stamped})


def verified(folder: Path, *, lazily: Iterable[str] = (), machine: bool = True) -> Manifest:
    """Check a compiled folder; contents are hashed only if no stamp is valid.

    Args:
        folder: the compiled folder.
        lazily: files that are not hashed again after a restart of the machine.
        machine: whether the folder must run on this machine.

    Raises:
        ArtifactError: lists all problems.
    """
    manifest = read_manifest(folder)
    damage = damaged(folder, manifest.files, lazily=frozenset(lazily))
    raise_for(folder, manifest, damage, machine=machine)
    return manifest


def seen(name: Path, files: Collection[Path]) -> bool:
    """Return whether `see` recorded these files since the machine started, unchanged since."""
    kept, boot = _read(_stamp(name)), _boot()
    return bool(files and boot) and kept == {"boot": boot, "files": _identities(files)}


def see(name: Path, files: Collection[Path]) -> None:
    """Record that `files` were verified by other means than SHA-256; see `seen`."""
    _write(_stamp(name), {"boot": _boot(), "files": _identities(files)})


def _identities(files: Collection[Path]) -> dict[str, list[int] | None]:
    return {str(path): _identity(path) for path in sorted(files)}


def _identity(path: Path) -> list[int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return [stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _boot() -> str:
    """Return an id of the machine's current boot; "" if the system does not provide one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _stamp(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    return settings.cache_dir() / "verified" / f"{name}.json"


def _read(stamp: Path) -> dict[str, Any]:
    """Read stamps; {} if the file is missing or damaged."""
    try:
        content = read_object(stamp)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content.get("files"), dict) else {}


def _write(stamp: Path, content: Mapping[str, Any]) -> None:
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(stamp, json.dumps(content))
    except OSError as e:  # a read-only cache costs only the time to hash again
        _log.warning("%s cannot be written (%s): files are hashed at each load", stamp, e)
