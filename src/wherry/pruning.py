"""Entries of the cache that go: because somebody says so, or because nothing needs them.

Beside running processes: what one makes or uses stays, see locks.py. A folder is renamed before it
is emptied, so that nobody finds half of one.
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

from wherry import settings
from wherry.cache import KEPT_SECONDS, Entry, entries, files, is_made_by
from wherry.locks import InUseError, nobody_makes, nobody_uses

logger = logging.getLogger(__name__)
_TEMPORARY = re.compile(r"\.(.+?)\.(\d+)(?:\.\d+)?\.(?:tmp|gone|old)")  # .NAME.PID[.N].tmp
_STILL_WRITTEN = 3600  # seconds since a temporary file changed, in which somebody may write it


def freed(chosen: Iterable[Entry]) -> int:
    """Bytes that the removal of entries frees: a file goes with the last of its links."""
    links: Counter[tuple[int, int]] = Counter()
    stats: dict[tuple[int, int], os.stat_result] = {}
    for entry in chosen:
        for _, stat in files(entry.path):
            inode = (stat.st_dev, stat.st_ino)
            links[inode] += 1
            stats[inode] = stat
    return sum(s.st_size for inode, s in stats.items() if s.st_nlink <= links[inode])


def remove(entry: Entry) -> int:
    """Remove an entry; the bytes that are freed.

    Raises:
        InUseError: another process makes it or uses it.
    """
    count = freed([entry])
    if entry.kind == "programs":  # a driver's run time has the folder open for new ones
        for path, _ in files(entry.path):
            path.unlink(missing_ok=True)
        return count
    with ExitStack() as held:
        held.enter_context(nobody_makes(entry.path))
        held.enter_context(nobody_uses(entry.path))
        gone = entry.path.with_name(f".{entry.path.name}.{os.getpid()}.gone")
        entry.path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    if entry.kind == "download" and not any(entry.path.parent.glob("[!.]*/config.json")):
        shutil.rmtree(entry.path.parent / "refs", ignore_errors=True)
        with suppress(OSError):  # another download has begun
            entry.path.parent.rmdir()
    return count


def unused(older_than: float) -> list[Entry]:
    """Entries that nobody has used for `older_than` seconds."""
    before = time.time() - older_than
    return [e for e in entries() if e.last_used <= before]


def sweep(code: str) -> None:
    """Remove what no process will miss: what the dead left, and what other compilers made long ago.

    Called where time passes anyway, before a compilation; what cannot be removed stays.

    Args:
        code: hash of the sources of this compiler; see `cache.key`.
    """
    with suppress(OSError):  # another process sweeps, too, or nothing can be written here
        for path in leftovers():
            discard(path)
        for entry in unused(KEPT_SECONDS):
            other = entry.manifest and not is_made_by(code, entry.manifest.key)
            if other or entry.kind == "packed":
                with suppress(InUseError):
                    remove(entry)
                    logger.info("%s was not used for long, and is removed", entry.path)


def leftovers() -> list[Path]:
    """Temporary files and folders of processes that have died."""
    return [p for p in _temporaries(settings.cache_dir()) if _is_left(p)]


def discard(path: Path) -> None:
    """Remove a leftover, as far as that goes."""
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
    found = _TEMPORARY.fullmatch(path.name)
    if not found or _lives(int(found[2])):
        return False
    try:
        if path.is_dir():
            with nobody_makes(path.with_name(found[1])):
                return True
        return time.time() - path.stat().st_mtime > _STILL_WRITTEN
    except (InUseError, OSError):  # in another container, whose processes are not seen here
        return False


def _lives(pid: int) -> bool:
    """Whether there is such a process; where that cannot be asked, locks and times decide."""
    if sys.platform == "win32":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
