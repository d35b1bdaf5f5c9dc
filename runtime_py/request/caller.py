"""Whether anybody still waits for work that runs on a thread."""

from __future__ import annotations

from wherry.errors import WherryError


class Abandoned(WherryError):
    """The caller has gone away; nobody sees this error."""


class Caller:
    """Shared by a thread that works and the coroutine that waits for it.

    A thread cannot be ended from outside: long work asks between its pieces.
    """

    def __init__(self) -> None:
        self.gone = False

    def check(self) -> None:
        """End the work of a caller who has gone.

        Raises:
            Abandoned: it has.
        """
        if self.gone:
            raise Abandoned("The caller has gone away")
