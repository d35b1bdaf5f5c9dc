"""How fast requests end: what somebody who must wait is told."""

from __future__ import annotations

import math
import time
from collections import deque

_KEPT = 64  # ends that are remembered
_LONGEST = 60  # seconds that anybody is told to wait
_OLD_SECONDS = 120.0  # an end before that says nothing of now


class Pace:
    """The last ends. One thread notes, any may ask."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=_KEPT)  # time.monotonic()

    def note(self, count: int) -> None:
        """So many requests have just ended."""
        now = time.monotonic()
        self._ends.extend([now] * min(count, _KEPT))

    def seconds_until(self, count: int) -> int:
        """Until so many more will have ended, at the pace of the last ones: 1 to 60.

        Where nothing has ended lately the wait since then is the best guess: who has seen nothing
        move for ten seconds may expect as many more.
        """
        now = time.monotonic()
        ends = [at for at in list(self._ends) if now - at < _OLD_SECONDS]
        if not ends:
            return 1
        each = (now - ends[0]) / len(ends)
        return max(1, min(_LONGEST, math.ceil(each * count)))
