"""What receives the messages of a request: a queue of a blocked thread or of a coroutine."""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from contextlib import suppress
from typing import Any, Protocol

from wherry.errors import WherryError

from .turns import turns_of

_SLICE = 64  # items that a coroutine takes at once; they last some milliseconds
_LOOK_SECONDS = 0.2


class Sink(Protocol):
    """A receiver of what happens to one request: a list of messages or events, or an error."""

    # The event loop on which `deliver` must be called; None: any thread may call it.
    loop: asyncio.AbstractEventLoop | None

    def deliver(self, item: list[Any] | BaseException) -> None:
        """Receive a list, or the error that ends the request."""


Item = tuple[Sink, "list[Any] | BaseException"]


class BlockingSink:
    """A queue for a caller that blocks its thread."""

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[list[Any] | BaseException] = queue.SimpleQueue()

    def deliver(self, item: list[Any] | BaseException) -> None:
        """Queue a list, or the error that ends the request, and wake the waiting thread."""
        self._items.put(item)

    def take(self) -> list[Any]:
        """Wait, and return all that has arrived.

        Raises:
            WherryError: the engine failed or was closed.
        """
        item = None
        while item is None:
            # another thread may get the signal of Ctrl-C, so that the main one has to look
            with suppress(queue.Empty):
                item = self._items.get(timeout=_LOOK_SECONDS)
        taken = _list(item)
        while not self._items.empty():
            taken += _list(self._items.get())
        return taken


class AsyncSink:
    """A queue for a coroutine on the running loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.loop: asyncio.AbstractEventLoop | None = loop
        self._turns = turns_of(loop)
        self._queue: deque[Any] = deque()
        # the error that `take` raises after it has returned everything else
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None  # of the coroutine in `take`

    def deliver(self, item: list[Any] | BaseException) -> None:
        """Queue a list, or the error that ends the request, and wake the waiting coroutine."""
        if isinstance(item, BaseException):
            self._error = item
        else:
            self._queue.extend(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[Any]:
        """Wait, and return what has arrived; much in slices, so that other tasks can run.

        Raises:
            WherryError: the engine failed or was closed.
        """
        while not self._queue:
            if self._error is not None:
                raise WherryError(str(self._error)) from self._error
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        count = min(len(self._queue), _SLICE)
        if not self._turns.admits(count):
            await self._turns.enter(count)
        return [self._queue.popleft() for _ in range(count)]


def _list(item: list[Any] | BaseException) -> list[Any]:
    if isinstance(item, BaseException):
        raise WherryError(str(item)) from item
    return item
