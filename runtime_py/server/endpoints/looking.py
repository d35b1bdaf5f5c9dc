"""Reads an engine's counters and the process's memory for a request."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from ...core.pulse import Snapshot
from ...host.dispatcher import Dispatcher

_LOOK_SECONDS = 0.2  # maximum seconds to wait for an engine that is in the middle of a long step


async def looked_at(dispatcher: Dispatcher) -> Snapshot:
    """Return the counters of an engine; during a long step, the last known ones."""
    looks, end = dispatcher.pulse.looks, time.monotonic() + _LOOK_SECONDS
    dispatcher.pulse.stir()
    while dispatcher.pulse.looks == looks and time.monotonic() < end:
        await asyncio.sleep(0.005)
    return dispatcher.snapshot()


def memory() -> dict[str, int]:
    """Return this process's memory in bytes; empty if the system does not tell."""
    if sys.platform != "linux":
        return {}
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"resident_bytes": pages * os.sysconf("SC_PAGE_SIZE")}
