"""Processes beside each other: one makes a folder while others wait, and none removes what is used.

Both locks are the system's, which lets go of them when a process dies, however it dies.
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

from wherry import settings

logger = logging.getLogger(__name__)


class InUseError(Exception):
    """Another process makes the folder, or uses it."""


@contextmanager
def making(folder: Path, what: str) -> Iterator[None]:
    """Be the only process that makes `folder`; waits for another one, with a word in the log.

    Look afterwards whether the other one has made it. The folder need not exist.

    Args:
        folder: what is made.
        what: for the word: "demo", "the weights of demo".
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
    """`making` without waiting.

    Raises:
        InUseError: another process makes it.
    """
    lock = _lock(folder)
    try:
        lock.acquire(blocking=False)
    except Timeout as e:
        raise InUseError(f"{folder} is being made by another process") from e
    try:
        yield
    finally:
        lock.release()


def _lock(folder: Path) -> FileLock:
    """The lock of a path, which need not exist; lock files lie in the cache."""
    place = settings.cache_dir() / "locks"
    place.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    return FileLock(place / f"{name}.lock")


class Use:
    """That this process uses a folder of the cache: nobody removes it meanwhile.

    The folder's time of change is its last use. Folders outside of the cache are left alone.
    Windows keeps open files by itself.
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        if not folder.resolve().is_relative_to(settings.cache_dir().resolve()):
            return
        touch(folder)
        if sys.platform != "win32":
            import fcntl

            with suppress(OSError):  # no such folder, or a file system without locks
                self._handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                fcntl.flock(self._handle, fcntl.LOCK_SH)

    def __enter__(self) -> Use:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the use; idempotent."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


@contextmanager
def nobody_uses(folder: Path) -> Iterator[None]:
    """Nobody begins to use `folder` inside of the block.

    Raises:
        InUseError: another process uses it.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise InUseError(f"{folder} is in use by another process") from e
        yield
    finally:
        os.close(handle)


def touch(path: Path) -> None:
    """Note that a file or folder of the cache is used now; a read-only one is not noted."""
    with suppress(OSError):
        os.utime(path)
