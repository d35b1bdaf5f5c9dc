"""Measures how fast requests end, for the `Retry-After` header of a full queue."""

from __future__ import annotations

import math
import time
from collections import deque

_KEPT = 64  # number of the latest request ends that are remembered
_LONGEST = 60  # seconds; the largest estimate that is reported
_OLD_SECONDS = 120.0  # a request that ended longer ago says nothing about the present load


class Pace:
    """The times at which the latest requests ended.

    One thread calls `note`; any thread may read.
    """

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=_KEPT)  # time.monotonic() of each remembered end

    def note(self, count: int) -> None:
        """Record that `count` requests have just ended."""
        now = time.monotonic()
        self._ends.extend([now] * min(count, _KEPT))

    def seconds_until(self, count: int) -> int:
        """Estimate the seconds until `count` more requests end, 1 to 60, from the last ends.

        If nothing has ended lately, the estimate is the time since the last end: after ten idle
        seconds it is ten more.
        """
        now = time.monotonic()
        ends = [at for at in list(self._ends) if now - at < _OLD_SECONDS]
        if not ends:
            return 1
        each = (now - ends[0]) / len(ends)
        return max(1, min(_LONGEST, math.ceil(each * count)))
