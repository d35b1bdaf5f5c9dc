"""Tells work on a thread whether its client still waits."""

from __future__ import annotations

from wherry.errors import WherryError


class Abandoned(WherryError):
    """The client has gone; nothing catches this error to show it."""


class Caller:
    """Shared by a thread that works and the coroutine that waits for it.

    A thread cannot be stopped from outside, so long work calls `check` between its pieces.
    """

    def __init__(self) -> None:
        self.gone = False

    def check(self) -> None:
        """Stop the work of a client that has gone.

        Raises:
            Abandoned: the client has gone.
        """
        if self.gone:
            raise Abandoned("The caller has gone away")
