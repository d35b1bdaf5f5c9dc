"""One writer a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wherry.errors import UsageError


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold `folder` until the block ends; the system lets go of it if the process dies.

    The lock is on the folder itself and leaves no file. Windows has no such lock; there it is left
    to the person.

    Raises:
        UsageError: another process holds it.
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
            raise UsageError(
                f"another process is writing {folder}. Wait for it, or choose another: -o DIR"
            ) from e
        yield
    finally:
        os.close(handle)
