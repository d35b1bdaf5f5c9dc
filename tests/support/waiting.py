"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 120  # far beyond what any of it takes: a machine may be busy


def until(happened: Callable[[], object], alive: Callable[[], object] = lambda: True) -> None:
    """Wait until `happened()` is true; an error when it cannot become so any more."""
    end = time.monotonic() + SECONDS
    while not happened():
        assert alive(), "it has ended before"
        assert time.monotonic() < end, f"it did not happen in {SECONDS} seconds"
        time.sleep(0.002)
