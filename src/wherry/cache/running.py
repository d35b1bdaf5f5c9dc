"""This machine's running servers that share the cache: a small file for each.

    running/PID.json   {"pid": 47, "url": "http://127.0.0.1:8000", "model": "demo", "began": 1.7e9}

A server locks its file, and the system releases the lock when it dies: a file without a lock
belongs to a dead server and is removed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from wherry.base import settings
from wherry.base.json_file import read_object

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Server:
    """A running `wherry serve` process of this machine."""

    pid: int
    url: str  # address such as "http://127.0.0.1:8000", or "unix:PATH"
    model: str  # model as typed
    began: float  # seconds since 1970


@contextmanager
def announced(url: str, model: str) -> Iterator[None]:
    """Announce this server to `servers` inside of the block, if the cache can be written."""
    path = _folder() / f"{os.getpid()}.json"
    handle: int | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        _hold(handle)
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(asdict(Server(os.getpid(), url, model, time.time()))).encode())
    except OSError as e:
        _log.warning("`wherry ps` will not find this server: %s", e)
    try:
        yield
    finally:
        if handle is not None:  # first, because Windows removes no open file
            os.close(handle)
        with suppress(OSError):
            path.unlink(missing_ok=True)


def servers() -> list[Server]:
    """List running servers, the oldest first, and remove files of dead ones."""
    running = []
    for path in _folder().glob("*.json"):
        if not _is_locked(path):
            with suppress(OSError):
                path.unlink(missing_ok=True)
            continue
        # the file is not completely written yet
        with suppress(OSError, ValueError, KeyError, TypeError):
            raw = read_object(path)
            running.append(Server(**{f.name: raw[f.name] for f in fields(Server)}))
    return sorted(running, key=lambda server: server.began)


def _folder() -> Path:
    return settings.cache_dir() / "running"


def _hold(handle: int) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(path: Path) -> bool:
    """Return whether the process that wrote a file is alive and locks it.

    On Windows the file of a dead process is removed by asking.
    """
    if sys.platform == "win32":  # which removes no open file
        try:
            path.unlink()
        except OSError:
            return True
        return False
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
