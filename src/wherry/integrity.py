"""Which files are known to be whole, so that gigabytes are not hashed at every start.

A file whose SHA-256 was right is stamped with its inode, size and times: of its content, and of any
change to it, which nobody can set. Until the stamp differs it is not read again, nor after the
machine was started anew unless it is read whole then, or checked as it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from wherry import settings
from wherry.artifact import (
    FileRecord,
    Manifest,
    file_problems,
    raise_for,
    read_manifest,
    write_atomically,
)
from wherry.json_file import read_object

_log = logging.getLogger(__name__)


def damaged(
    folder: Path,
    files: Mapping[str, FileRecord],
    *,
    lazily: Collection[str] = (),
    thorough: bool = False,
) -> dict[str, str]:
    """What is missing, cut or changed of `files` in `folder`: name -> what is wrong with it.

    Args:
        folder: of the files.
        files: what they have to be.
        lazily: those not hashed again after each start of the machine.
        thorough: hash all, whatever the stamps say.
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
        whole = {
            name: [*identity, files[name].sha256]
            for name, identity in before.items()
            if identity is not None and name not in problems
        }
        _write(stamp, {"boot": boot, "files": whole})
    return problems


def keep(folder: Path, files: Mapping[str, FileRecord]) -> None:
    """Stamp `files`, which were made or hashed just now: their first use does not read them."""
    made = {name: _identity(folder / name) for name in files}
    whole = {n: [*identity, files[n].sha256] for n, identity in made.items() if identity}
    _write(_stamp(folder), {"boot": _boot(), "files": whole})


def verified(folder: Path, *, lazily: Iterable[str] = (), machine: bool = True) -> Manifest:
    """Check a compiled folder; contents are hashed only if they are not known yet.

    Args:
        folder: with a manifest.
        lazily: files not hashed again after each start of the machine.
        machine: whether the folder has to run here.

    Raises:
        ArtifactError: with all that is wrong.
    """
    manifest = read_manifest(folder)
    found = damaged(folder, manifest.files, lazily=frozenset(lazily))
    raise_for(folder, manifest, found, machine=machine)
    return manifest


def seen(name: Path, files: Collection[Path]) -> bool:
    """Whether `see` was told of these very files, unchanged, since the machine was started."""
    kept, boot = _read(_stamp(name)), _boot()
    return bool(files and boot) and kept == {"boot": boot, "files": _identities(files)}


def see(name: Path, files: Collection[Path]) -> None:
    """Remember that `files` were found whole, by other means than SHA-256; see `seen`."""
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
    """What differs after each start of the machine; "" where nobody tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _stamp(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    return settings.cache_dir() / "verified" / f"{name}.json"


def _read(stamp: Path) -> dict[str, Any]:
    """What was written; a missing or damaged stamp knows nothing."""
    try:
        found = read_object(stamp)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found.get("files"), dict) else {}


def _write(stamp: Path, content: Mapping[str, Any]) -> None:
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(stamp, json.dumps(content))
    except OSError as e:  # a read-only cache costs time, nothing else
        _log.warning("%s cannot be written (%s): files are hashed at each load", stamp, e)
