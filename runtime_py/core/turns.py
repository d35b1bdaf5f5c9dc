"""How much of a turn of an event loop answers may take: whoever else uses the loop waits for it."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

PER_TURN = 128  # units of work: events without logprobs, each some ten microseconds


class Turns:
    """Who may work in which turn of one loop: first come, first served, so much in each.

    A hundred streams whose tokens come at once would else be written in one turn.
    """

    def __init__(self) -> None:
        self._spent = 0  # units of this turn
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, work: int) -> None:
        """Await the turn in which so many units may be done, at once after this; at least 1."""
        if not self._line and self._has_room(work):
            self._spend(work)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((work, future))
        await future

    def _has_room(self, work: int) -> bool:
        return not self._spent or self._spent + work <= PER_TURN

    def _spend(self, work: int) -> None:
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._next)
        self._spent += work

    def _next(self) -> None:
        """The next turn: who is let in here works in the one after it."""
        self._spent = let_in = 0
        while self._line and (not let_in or let_in + self._line[0][0] <= PER_TURN):
            work, future = self._line.popleft()
            if not future.done():  # else its task was cancelled
                future.set_result(None)
                let_in += work
        if let_in:  # after all of them are to be woken, so that this is called when they have run
            self._spend(let_in)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """The turns of an event loop; called on that loop."""
    found = _turns.get(loop)
    if found is None:
        found = _turns[loop] = Turns()
    return found
