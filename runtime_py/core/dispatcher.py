"""A thread polls the core's events and hands each to the request that waits for it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Protocol

from wherry.errors import WherryError

from ..errors import BusyError, RequestError
from .interface import Core, CoreStats, Event, Finish, Job
from .pace import Pace
from .pulse import Pulse, Snapshot
from .turns import turns_of

_log = logging.getLogger(__name__)
_SLICE = 64  # units of work (see Turns) that a coroutine takes at once; they last some milliseconds
# number of a token's alternatives whose conversion costs as much as the token's own
_TOPS_A_UNIT = 5
_WAIT_MS = 1000  # milliseconds that the poller sleeps at most; a wake ends the sleep at once


class Sink(Protocol):
    """A receiver of one API request's events.

    Its core requests (`n` choices) may share one sink.
    """

    # The event loop on which `deliver` must be called; None: any thread may call it.
    loop: asyncio.AbstractEventLoop | None

    def deliver(self, item: list[Event] | BaseException) -> None:
        """Receive a list of events, or the error that ends the request."""


_Item = tuple[Sink, "list[Event] | BaseException"]


class BlockingSink:
    """A queue of events for a caller that blocks its thread."""

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[list[Event] | BaseException] = queue.SimpleQueue()

    def deliver(self, item: list[Event] | BaseException) -> None:
        """Queue events, or the error that ends the request, and wake the waiting thread."""
        self._items.put(item)

    def take(self) -> list[Event]:
        """Wait for events and return all that have arrived.

        Raises:
            WherryError: the engine failed or was closed.
        """
        events = _events(self._items.get())
        while not self._items.empty():
            events += _events(self._items.get())
        return events


class AsyncSink:
    """A queue of events for a coroutine on the running loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.loop: asyncio.AbstractEventLoop | None = loop
        self._turns = turns_of(loop)
        self._events: deque[Event] = deque()
        # the error that `take` raises after it has returned all events
        self._error: BaseException | None = None
        self._filled = asyncio.Event()

    def deliver(self, item: list[Event] | BaseException) -> None:
        """Queue events, or the error that ends the request, and wake the waiting coroutine."""
        if isinstance(item, BaseException):
            self._error = item
        else:
            self._events.extend(item)
        self._filled.set()

    async def take(self) -> list[Event]:
        """Await events and return them.

        Long lists in slices, so that other tasks of the loop can run.

        Raises:
            WherryError: the engine failed or was closed.
        """
        await self._filled.wait()
        if not self._events and self._error is not None:
            raise WherryError(str(self._error)) from self._error
        count, work = self._slice()
        await self._turns.enter(work)
        events = [self._events.popleft() for _ in range(count)]
        if not self._events and self._error is None:
            self._filled.clear()
        return events

    def _slice(self) -> tuple[int, int]:
        """Return how many events may be taken at once, and the units of work in them."""
        work = 0
        for count, event in enumerate(self._events, 1):
            work += 1 + len(event.top) // _TOPS_A_UNIT
            if work >= _SLICE:
                return count, work
        return len(self._events), work


def _events(item: list[Event] | BaseException) -> list[Event]:
    if isinstance(item, BaseException):
        raise WherryError(str(item)) from item
    return item


class Dispatcher:
    """Owns a core: submits requests to it, polls it, and closes it.

    Attributes:
        limit: maximum number of core requests, running and queued; None: no limit.
        pulse: watches the core's counters.
        pace: measures how fast requests end.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self.limit: int | None = None
        # The lock guards the core's lifetime: no call may run during or after close. It is
        # reentrant, because the garbage collector may close a stream, which aborts its request, on
        # any thread.
        self._lock = threading.RLock()
        self._sinks: dict[int, Sink] = {}
        self._ids = itertools.count(1)
        self.pace = Pace()
        self._to_abort: queue.SimpleQueue[int] = queue.SimpleQueue()
        # the reason why the engine accepts no more requests; None while it does
        self._failure: BaseException | None = None
        self._closed = False
        core.start()
        self.pulse = Pulse(core.stats, lambda: len(self._sinks))
        self._thread = threading.Thread(target=self._poll, name="wherry-events", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Tell whether the engine has failed and accepts no request."""
        return self._failure is not None

    @property
    def active(self) -> int:
        """Return the number of core requests that have not ended."""
        return len(self._sinks)

    def submit(self, jobs: Sequence[Job], sink: Sink, *, admitted: bool = False) -> list[int]:
        """Submit all jobs or none to the core, and return their request ids in order.

        Raises:
            BusyError: `limit` is reached, and the request was not `admitted`.
            RequestError: these jobs alone exceed `limit`.
            WherryError: the engine is closed or has failed.
            UsageError: the core refuses a job.
        """
        with self._lock:
            self._check_open()
            if not admitted:
                self.check_room(len(jobs))
            ids = [next(self._ids) for _ in jobs]
            # the sink must be known before the first event of a job can arrive
            self._sinks.update(dict.fromkeys(ids, sink))
        self.pulse.stir()
        try:
            for request_id, job in zip(ids, jobs, strict=True):
                with self._lock:
                    self._check_open()
                    self._core.add(request_id, job.prompt, job.params)
        except BaseException:
            self.abort(ids)
            raise
        return ids

    def abort(self, ids: Sequence[int]) -> None:
        """Abort core requests and free their pages; requests that have ended are ignored."""
        for request_id in ids:
            with self._lock:
                if self._sinks.pop(request_id, None) is not None and self._failure is None:
                    self._core.abort(request_id)

    def abort_soon(self, ids: Sequence[int]) -> None:
        """Abort requests on the poller's thread; an event loop must not block during a step."""
        live = [i for i in ids if self._sinks.pop(i, None) is not None]
        for request_id in live:
            self._to_abort.put(request_id)
        # If another thread holds the lock, the poller is not woken: it looks again within _WAIT_MS.
        if live and self._lock.acquire(blocking=False):
            try:
                if self._failure is None:
                    self._core.wake()
            finally:
                self._lock.release()

    def stats(self) -> CoreStats:
        """Return the core's current counters.

        Raises:
            WherryError: the engine is closed or has failed.
        """
        with self._lock:
            self._check_open()
            return self._core.stats()

    def snapshot(self) -> Snapshot:
        """Return the last known counters at once, even while the core is busy."""
        return Snapshot(
            stats=self.pulse.stats,
            age_seconds=time.monotonic() - self.pulse.seen_at,
            active=self.active,
            limit=self.limit,
            stalled_seconds=self.pulse.stalled_seconds,
            failed=self.failed,
        )

    def close(self) -> None:
        """End all requests with an error, stop the poller, free the core. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._failure is None:
                self._failure = WherryError("The engine is closed")
                self._core.wake()
        self._thread.join()
        self.pulse.close()
        self._fail_all(self._failure)
        self._core.close()

    def _check_open(self) -> None:
        if self._failure is not None:
            raise WherryError(str(self._failure)) from self._failure

    def check_room(self, jobs: int) -> None:
        """Check that this number of further requests would be accepted now.

        Raises:
            BusyError: the queue has no room for them now.
            RequestError: they alone exceed the limit.
        """
        if self.limit is None or len(self._sinks) + jobs <= self.limit:
            return
        if jobs > self.limit:
            raise RequestError(
                f"The request asks for {jobs} outputs at once (n for each prompt); at most "
                f"{self.limit} are queued",
                param="n",
            )
        raise BusyError(
            f"{len(self._sinks)} outputs are running or queued, of at most {self.limit}. "
            "Try again in a moment.",
            retry_after=self.pace.seconds_until(len(self._sinks) + jobs - self.limit),
        )

    def _poll(self) -> None:
        try:
            while self._failure is None:
                events = self._core.wait_events(_WAIT_MS)
                while not self._to_abort.empty():
                    self._core.abort(self._to_abort.get())
                if events:
                    self._route(events)
        except Exception as e:
            _log.exception("The engine has failed")
            with self._lock:
                self._failure = self._failure or e
            self._fail_all(e)

    def _route(self, events: list[Event]) -> None:
        batches: defaultdict[Sink, list[Event]] = defaultdict(list)
        if any(event.finish == Finish.ERROR for event in events):
            self.pulse.stir()  # a read of the counters shows whether the next step works
        if ended := sum(1 for event in events if event.finish):
            self.pace.note(ended)
        for event in events:
            sink = self._sinks.pop(event.id, None) if event.finish else self._sinks.get(event.id)
            if sink is not None:  # an aborted request has no sink any more
                batches[sink].append(event)
        self._deliver(list(batches.items()))

    def _fail_all(self, error: BaseException) -> None:
        sinks = {self._sinks.pop(i, None) for i in list(self._sinks)}
        self._deliver([(sink, error) for sink in sinks if sink is not None])

    def _deliver(self, items: Sequence[_Item]) -> None:
        loops: defaultdict[asyncio.AbstractEventLoop, list[_Item]] = defaultdict(list)
        for sink, item in items:
            if sink.loop is None:
                sink.deliver(item)
            else:
                loops[sink.loop].append((sink, item))
        # each loop is woken once, even if several of its requests have events
        for loop, batch in loops.items():
            try:
                loop.call_soon_threadsafe(_deliver_here, batch)
            except RuntimeError:  # the loop is closed, and its requests ended with it
                _log.debug("%d requests of an event loop that has ended", len(batch))


def _deliver_here(batch: Sequence[_Item]) -> None:
    for sink, item in batch:
        sink.deliver(item)
