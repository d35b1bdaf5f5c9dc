"""Programs that run under a limit of memory, as on a phone: a memory cgroup of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

REQUIRED = "WHERRY_REQUIRE_MEMORY_LIMIT"  # set by `make nightly` of root, who can limit memory
_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")


class Limited:
    """A cgroup with a limit.

    Attributes:
        prefix: what precedes the words of a command that runs in it.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        v1 = (folder / "memory.limit_in_bytes").exists()
        (folder / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(limit))
        self._events = folder / ("memory.oom_control" if v1 else "memory.events")
        script = f'echo $$ > {folder / "cgroup.procs"} && exec "$@"'
        self.prefix = ["sh", "-c", script, "sh"]

    def anonymous(self) -> int:
        """Bytes that are not the content of files, which the system can drop."""
        lines = (self._folder / "memory.stat").read_text().splitlines()
        rows = dict(line.split() for line in lines)
        return int(rows.get("anon", rows.get("rss", 0)))

    def killed(self) -> int:
        """How many processes the system has ended for want of memory."""
        rows = dict(line.split() for line in self._events.read_text().splitlines())
        return int(rows.get("oom_kill", 0))


def _missing(why: str) -> NoReturn:
    if os.environ.get(REQUIRED):
        pytest.fail(why)
    pytest.skip(why)


@contextmanager
def limited(limit: int) -> Iterator[Limited]:
    """Make a cgroup with a limit in bytes; skip, or fail where one is required, and say why."""
    home = _V1 if (_V1 / "cgroup.procs").exists() else _V2
    folder = home / f"wherry-tests-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as e:
        _missing(f"no memory cgroup can be made here: {e}")
    try:
        try:
            cgroup = Limited(folder, limit)
        except OSError as e:
            _missing(f"no memory cgroup can be limited here: {e}")
        yield cgroup
    finally:
        for _ in range(100):  # a process leaves its cgroup some time after its end
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.05)
