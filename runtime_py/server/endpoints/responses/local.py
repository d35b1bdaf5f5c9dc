"""What one WebSocket connection keeps of its last response, if that is kept nowhere else."""

from __future__ import annotations

from .items import new_id
from .memory import KeptResponse
from .shelf import Shelf

LOCAL = "wherry.local"  # its name in the scope of a request that came over a socket


class Local:
    """The state of one connection: the response of its last turn that was not to be stored.

    Args:
        shelf: of all connections, which bounds what they keep together.
    """

    def __init__(self, shelf: Shelf[KeptResponse]) -> None:
        self._shelf = shelf
        self._connection = new_id("ws")
        self._kept: str | None = None
        self._previous: str | None = None

    def begin(self, previous: str | None) -> None:
        """A turn begins, which goes on from a response."""
        self._previous = previous

    def get(self, id: str) -> KeptResponse | None:
        """The response, if it is the last one."""
        return self._shelf.get((self._connection, id))

    def keep(self, id: str, response: KeptResponse) -> None:
        """The turn has ended with this response, which takes the place of the last one."""
        self.close()
        if self._shelf.put((self._connection, id), response):
            self._kept = id

    def failed(self) -> None:
        """The turn has failed: nothing can go on from where it began."""
        if self._kept is not None and self._kept == self._previous:
            self.close()

    def close(self) -> None:
        """Forget all."""
        if self._kept is not None:
            self._shelf.pop((self._connection, self._kept))
            self._kept = None
