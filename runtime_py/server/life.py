"""The server's state: whether it accepts requests, and the number of running requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# these paths need no key, and are answered even while the server drains
PROBES = frozenset({"/health", "/ready"})


class Life:
    """The state that the server's loop and the requests share.

    Attributes:
        draining: whether new requests are refused; running ones may end.
        active: number of running requests, except probes.
        sockets: number of WebSocket connections; their requests count in `active`.
    """

    def __init__(self) -> None:
        self.draining = False
        self.active = 0
        self.sockets = 0
        self._ends_at = 0.0

    @contextmanager
    def request(self, path: str) -> Iterator[None]:
        """Count a running request during the context."""
        counted = path not in PROBES
        self.active += counted
        try:
            yield
        finally:
            self.active -= counted

    @contextmanager
    def socket(self) -> Iterator[None]:
        """Count an open WebSocket connection during the context."""
        self.sockets += 1
        try:
            yield
        finally:
            self.sockets -= 1

    def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and give running ones `seconds` to end.

        A signal handler may call this.
        """
        self._ends_at = time.monotonic() + seconds
        self.draining = True

    @property
    def drain_seconds_left(self) -> float:
        """Return the seconds until running requests are aborted, at least 0."""
        return max(0.0, self._ends_at - time.monotonic())

    @property
    def drained(self) -> bool:
        """Tell whether no request is running."""
        return self.draining and (self.active == 0 or self.drain_seconds_left == 0)
