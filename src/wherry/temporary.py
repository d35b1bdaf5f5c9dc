"""Folders that are made under a temporary name, so that a name always means something whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_under_way: set[Path] = set()


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """An empty folder beside `target`, gone when the block ends unless it was renamed in it.

    The caller holds the lock of `target` (`locks.making`): what lies there under the same name is
    of a process that has died, and goes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for dead in leftovers(target):
        shutil.rmtree(dead, ignore_errors=True)
    made = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    made.mkdir()
    _under_way.add(made)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        _under_way.discard(made)


def leftovers(target: Path) -> list[Path]:
    """Temporary folders of `target` whose processes were killed; for who holds its lock."""
    prefix = f".{target.name}."
    beside = target.parent.iterdir() if target.parent.is_dir() else ()
    return [p for p in beside if p.name.startswith(prefix) and _is_temporary(p.name[len(prefix) :])]


def _is_temporary(rest: str) -> bool:
    pid, _, suffix = rest.partition(".")
    return pid.isdigit() and suffix in ("tmp", "gone")


def remove_all() -> None:
    """Remove what this process has under way, for a process that ends at once.

    Its other threads go on meanwhile. A folder is renamed first, so that it is not emptied while
    one of them gives it its last name.
    """
    for folder in list(_under_way):
        gone = folder.with_suffix(".gone")
        with suppress(OSError):
            folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
