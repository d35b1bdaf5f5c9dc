"""Tells work on a thread whether the client that asked for it still waits."""

from __future__ import annotations

from wherry.errors import WherryError


class Abandoned(WherryError):
    """The client has disconnected; no handler reports this error, because there is no reader."""


class Caller:
    """The waiting coroutine of a request, as the thread that works for it sees it.

    A thread cannot be stopped from outside, so long work calls `check` between its pieces.
    """

    def __init__(self) -> None:
        self.gone = False

    def check(self) -> None:
        """Raise an error if the client has disconnected, to stop the work.

        Raises:
            Abandoned: the client has disconnected.
        """
        if self.gone:
            raise Abandoned("The caller has gone away")
