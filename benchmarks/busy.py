"""Measures how many cores other processes use while this one waits."""

from __future__ import annotations

import time
from pathlib import Path

STAT = Path("/proc/stat")
TOO_BUSY = 0.1  # busy cores above which the ratios would change
SECONDS = 1.0


def busy_cores(seconds: float = SECONDS) -> float | None:
    """Return the mean number of busy cores during `seconds`; None if there is no /proc/stat.

    Time that the hypervisor gives to other machines ("steal") counts as far as it is visible.
    """
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    if before is None or after is None:
        return None
    (all_before, idle_before, cores), (all_after, idle_after, _) = before, after
    total = all_after - all_before
    return cores * (1 - (idle_after - idle_before) / total) if total else 0.0


def _ticks() -> tuple[int, int, int] | None:
    """Return ticks of all cores, their idle ticks, and the number of cores; None: no /proc/stat."""
    try:
        lines = STAT.read_text().splitlines()
    except OSError:
        return None
    ticks = [
        int(x) for x in lines[0].split()[1:9]
    ]  # user nice system idle iowait irq softirq steal
    cores = sum(line.startswith("cpu") for line in lines) - 1
    return sum(ticks), ticks[3] + ticks[4], cores


def warning(cores: float | None) -> str | None:
    """Return a warning about a busy machine; None if it is idle."""
    if cores is None:
        return "whether the machine was busy is not known: there is no /proc/stat"
    if cores <= TOO_BUSY:
        return None
    return f"other work kept {cores:.2f} cores busy before the first run: do not quote this row"
