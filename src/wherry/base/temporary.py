"""Writes files and folders under temporary names; they get their final name when complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wherry.errors import UsageError, listing

_unfinished: set[Path] = set()


def require_own(out: Path, index: str, kind: str) -> None:
    """Raise if an output folder has files of others, which would be mixed with new ones.

    Args:
        out: the output folder; it may be missing.
        index: name of a file that every folder of this kind has.
        kind: what the folder is, for the message: "package".

    Raises:
        UsageError: the folder has files and no `index`.
    """
    if not out.exists():
        return
    names = [path.name for path in out.iterdir()] if out.is_dir() else [out.name]
    if names and index not in names:
        raise UsageError(
            f"{out} has files and is not a {kind}:\n{listing(sorted(names), 5)}\n"
            "Choose another folder: -o DIR"
        )


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Create an empty folder next to `target`; it is removed at the end unless it was renamed.

    The caller has locked `target` (`locks.making`), so folders with its temporary names belong to
    dead processes and are removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for dead in leftovers(target):
        shutil.rmtree(dead, ignore_errors=True)
    folder = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    folder.mkdir()
    _unfinished.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unfinished.discard(folder)


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write a file under a temporary name in the same folder, flush it to disk, and rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def leftovers(target: Path) -> list[Path]:
    """List temporary folders of `target` from killed processes; the caller has locked `target`."""
    prefix = f".{target.name}."
    siblings = target.parent.iterdir() if target.parent.is_dir() else ()
    return [
        p for p in siblings if p.name.startswith(prefix) and _is_temporary(p.name[len(prefix) :])
    ]


def _is_temporary(rest: str) -> bool:
    pid, _, suffix = rest.partition(".")
    return pid.isdigit() and suffix in ("tmp", "gone")


def remove_all() -> None:
    """Remove this process's unfinished folders, just before it exits while other threads run.

    A folder is renamed first, so that no thread gives its final name to a half-empty one.
    """
    for folder in list(_unfinished):
        gone = folder.with_suffix(".gone")
        with suppress(OSError):
            folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
