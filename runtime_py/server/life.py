"""The server's own life: whether it takes requests, and how many are under way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

PROBES = frozenset({"/health", "/ready"})  # answered without a key, and to the very end


class Life:
    """Shared by the server's loop, which ends it, and by the requests.

    Attributes:
        draining: no new requests are taken; those under way may end.
        active: requests under way, probes excepted.
        sockets: WebSocket connections; the requests that come over them are counted as all are.
    """

    def __init__(self) -> None:
        self.draining = False
        self.active = 0
        self.sockets = 0
        self._ends_at = 0.0

    @contextmanager
    def request(self, path: str) -> Iterator[None]:
        """One request is under way."""
        counted = path not in PROBES
        self.active += counted
        try:
            yield
        finally:
            self.active -= counted

    @contextmanager
    def socket(self) -> Iterator[None]:
        """One WebSocket connection is open."""
        self.sockets += 1
        try:
            yield
        finally:
            self.sockets -= 1

    def drain(self, seconds: float) -> None:
        """Take no new requests; those under way have `seconds`. May be called by a signal."""
        self._ends_at = time.monotonic() + seconds
        self.draining = True

    @property
    def drain_seconds_left(self) -> float:
        """At least 0."""
        return max(0.0, self._ends_at - time.monotonic())

    @property
    def drained(self) -> bool:
        """Whether nothing is left to wait for."""
        return self.draining and (self.active == 0 or self.drain_seconds_left == 0)
