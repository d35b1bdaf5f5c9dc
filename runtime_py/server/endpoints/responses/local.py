"""The last response of a WebSocket connection whose requests set `store` to false."""

from __future__ import annotations

from .items import new_id
from .memory import KeptResponse
from .response_store import ResponseStore

LOCAL = "wherry.local"  # key in the ASGI scope of a request that came over a WebSocket


class Local:
    """A connection's last response that is not stored elsewhere.

    Args:
        store: the store that all connections share; it limits their bytes.
    """

    def __init__(self, store: ResponseStore[KeptResponse]) -> None:
        self._store = store
        self._connection = new_id("ws")
        self._kept: str | None = None
        self._previous: str | None = None

    def begin(self, previous: str | None) -> None:
        """Record which response the new turn continues."""
        self._previous = previous

    def get(self, id: str) -> KeptResponse | None:
        """Return the connection's last response if it has this id."""
        return self._store.get((self._connection, id))

    def keep(self, id: str, response: KeptResponse) -> None:
        """Store the response of this turn in place of the last one."""
        self.close()
        if self._store.put((self._connection, id), response):
            self._kept = id

    def failed(self) -> None:
        """Forget the response that a failed turn continued."""
        if self._kept is not None and self._kept == self._previous:
            self.close()

    def close(self) -> None:
        """Remove the connection's response from the store."""
        if self._kept is not None:
            self._store.pop((self._connection, self._kept))
            self._kept = None
