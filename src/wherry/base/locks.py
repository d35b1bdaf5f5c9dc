"""Locks between processes: one writes a folder while others wait; folders in use are not removed.

They are file locks of the operating system, which releases them when a process dies.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from . import settings

logger = logging.getLogger(__name__)


class InUseError(Exception):
    """Another process writes or uses the folder."""


@contextmanager
def making(folder: Path, what: str) -> Iterator[None]:
    """Hold the lock for writing `folder`; waiting for another process is logged.

    Check afterwards whether the other process has written it. The folder need not exist.

    Args:
        folder: the folder to write.
        what: description for the log: "demo", "the weights of demo".
    """
    lock = _lock(folder)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        logger.warning("Another process is at work on %s; waiting for it to finish.", what)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def nobody_makes(folder: Path) -> Iterator[None]:
    """Hold the lock for writing `folder`, without waiting.

    Raises:
        InUseError: another process writes the folder.
    """
    lock = _lock(folder)
    try:
        lock.acquire(blocking=False)
    except Timeout as e:
        raise InUseError(f"{folder} is being created by another process") from e
    try:
        yield
    finally:
        lock.release()


def _lock(folder: Path) -> FileLock:
    """Return the lock of a path, which need not exist; lock files are in the cache."""
    place = settings.cache_dir() / "locks"
    place.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    return FileLock(place / f"{name}.lock")


class Use:
    """Marks a folder of the cache as used by this process, so that it is not removed.

    The folder's modification time is its last use. Folders outside of the cache are unchanged. On
    Windows open files cannot be removed anyway.
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        if not folder.resolve().is_relative_to(settings.cache_dir().resolve()):
            return
        touch(folder)
        if sys.platform != "win32":
            import fcntl

            with suppress(OSError):  # the folder is missing, or its file system has no locks
                self._handle = os.open(folder, os.O_RDONLY)
                fcntl.flock(self._handle, fcntl.LOCK_SH)

    def __enter__(self) -> Use:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder; idempotent."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


@contextmanager
def nobody_uses(folder: Path) -> Iterator[None]:
    """Prevent other processes from starting to use `folder` inside of the block.

    Raises:
        InUseError: another process uses the folder.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise InUseError(f"{folder} is in use by another process") from e
        yield
    finally:
        os.close(handle)


def touch(path: Path) -> None:
    """Record the use of a cache entry in its modification time, unless the cache is read-only."""
    with suppress(OSError):
        os.utime(path)
