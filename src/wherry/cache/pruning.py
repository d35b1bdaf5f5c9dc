"""Removes entries of the cache: on request, or because nothing needs them.

Other processes may run: entries that a process writes or uses stay, see base/locks.py. A folder is
renamed before it is emptied, so that no process finds half of it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from wherry.base import settings
from wherry.base.locks import InUseError, nobody_makes, nobody_uses

from .entries import KEPT_SECONDS, Entry, entries, files, is_compiled_by

logger = logging.getLogger(__name__)
_TEMPORARY = re.compile(r"\.(.+?)\.(\d+)(?:\.\d+)?\.(?:tmp|gone|old)")  # a temporary file's name
_STILL_WRITTEN = 3600  # seconds; a temporary file changed more recently may still be written


def freed(chosen: Iterable[Entry]) -> int:
    """Return the bytes that removing entries frees: a file is freed with the last of its links."""
    links: Counter[tuple[int, int]] = Counter()
    stats: dict[tuple[int, int], os.stat_result] = {}
    for entry in chosen:
        for _, stat in files(entry.path):
            inode = (stat.st_dev, stat.st_ino)
            links[inode] += 1
            stats[inode] = stat
    return sum(s.st_size for inode, s in stats.items() if s.st_nlink <= links[inode])


def remove(entry: Entry) -> int:
    """Remove an entry; return the freed bytes.

    Raises:
        InUseError: another process writes or uses the entry.
    """
    count = freed([entry])
    # a driver's runtime keeps this folder open, so only its files are removed
    if entry.kind == "programs":
        for path, _ in files(entry.path):
            path.unlink(missing_ok=True)
        return count
    with ExitStack() as locks:
        locks.enter_context(nobody_makes(entry.path))
        locks.enter_context(nobody_uses(entry.path))
        gone = entry.path.with_name(f".{entry.path.name}.{os.getpid()}.gone")
        entry.path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    if entry.kind == "download" and not any(entry.path.parent.glob("[!.]*/config.json")):
        shutil.rmtree(entry.path.parent / "refs", ignore_errors=True)
        with suppress(OSError):  # another process has begun to download again
            entry.path.parent.rmdir()
    return count


def unused(older_than: float) -> list[Entry]:
    """List entries that were not used for `older_than` seconds."""
    before = time.time() - older_than
    return [e for e in entries() if e.last_used <= before]


def sweep(code: str) -> None:
    """Remove files of dead processes, and old entries of other compiler versions.

    Called before a compilation, which takes time anyway; entries that cannot be removed stay.

    Args:
        code: hash of the sources of this compiler; see `entries.key_of`.
    """
    with suppress(OSError):  # another process removes entries, too, or the cache is read-only
        for path in leftovers():
            discard(path)
        for entry in unused(KEPT_SECONDS):
            other = entry.manifest and not is_compiled_by(code, entry.manifest.key)
            if other or entry.kind == "packed":
                with suppress(InUseError):
                    remove(entry)
                    logger.info("%s was not used for long, and is removed", entry.path)


def leftovers() -> list[Path]:
    """List temporary files and folders of dead processes."""
    return [p for p in _temporaries(settings.cache_dir()) if _is_left(p)]


def discard(path: Path) -> None:
    """Remove a temporary file or folder as far as possible."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _temporaries(cache: Path) -> Iterator[Path]:
    for kind in ("hub", "weights", "models", "packed", "programs", "verified"):
        for pattern in (".*", "*/.*", "*/*/.*"):
            yield from (cache / kind).glob(pattern)


def _is_left(path: Path) -> bool:
    match = _TEMPORARY.fullmatch(path.name)
    if not match or _lives(int(match[2])):
        return False
    try:
        if path.is_dir():
            with nobody_makes(path.with_name(match[1])):
                return True
        return time.time() - path.stat().st_mtime > _STILL_WRITTEN
    except (InUseError, OSError):
        # a process in another container, which is not visible here, uses the entry
        return False


def _lives(pid: int) -> bool:
    """Return whether a process exists; False if unknown, so that locks and times decide."""
    if sys.platform == "win32":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
