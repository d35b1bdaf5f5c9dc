"""Limits the work of response streams in one iteration of an event loop, which all tasks share."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

# units of work in an iteration; a unit is an event without logprobs, about ten microseconds
PER_TURN = 128


class Turns:
    """Grants work on one event loop in the order of arrival, with a limit for each iteration.

    Without it, a hundred streams with new tokens would be written in one iteration.
    """

    def __init__(self) -> None:
        self._spent = 0  # units of work granted in this iteration
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    def admits(self, work: int) -> bool:
        """Tell whether this iteration has room for `work` units, which are then granted."""
        if self._line or (self._spent and self._spent + work > PER_TURN):
            return False
        self._spend(work)
        return True

    async def enter(self, work: int) -> None:
        """Wait for an iteration with room for `work` units.

        More than PER_TURN units get one alone.
        """
        if self.admits(work):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((work, future))
        await future

    def _spend(self, work: int) -> None:
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._next)
        self._spent += work

    def _next(self) -> None:
        """Start the next iteration; tasks admitted now run in the iteration after it."""
        self._spent = let_in = 0
        while self._line and (not let_in or let_in + self._line[0][0] <= PER_TURN):
            work, future = self._line.popleft()
            if not future.done():  # a cancelled task's future is already done
                future.set_result(None)
                let_in += work
        # `call_soon` puts `_next` after the wake-ups of the admitted tasks, so it runs after them
        if let_in:
            self._spend(let_in)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """Return the `Turns` of an event loop; call it on that loop."""
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = Turns()
    return turns
