"""A thread polls the core's events, and hands what follows from them to the waiting requests."""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from wherry.errors import WherryError

from ..caller import Caller
from ..core.host_abi import ERROR, LAST
from ..core.interface import Core, CoreStats, Job, OutputGrammar, Records
from ..core.native import events_of
from ..core.pulse import Pulse, Snapshot
from ..errors import BusyError, RequestError
from .host import Host
from .pace import Pace
from .request import HostRequest
from .running import Message, Running
from .sinks import Item, Sink

_log = logging.getLogger(__name__)
_RAW_IDS = 2**62  # the first id of requests on token ids; those of C++ count from 1
_WAIT_MS = 1000  # milliseconds that the poller sleeps at most; a wake ends the sleep at once


class Dispatcher:
    """Owns a core: submits requests to it, polls it, and closes it.

    Args:
        core: the core.
        host: what serves requests above tokens; closed with the core.

    Attributes:
        host: what serves requests above tokens.
        limit: maximum number of core requests, running and queued; None: no limit.
        pulse: watches the core's counters.
        pace: measures how fast requests end.
    """

    def __init__(self, core: Core, host: Host) -> None:
        self._core = core
        self.host = host
        self.limit: int | None = None
        # The lock guards the core's lifetime: no call may run during or after close. It is
        # reentrant, because the garbage collector may close a stream, which aborts its request, on
        # any thread.
        self._lock = threading.RLock()
        self._calls = 0  # calls of the host that run, for which `close` waits
        self._returned = threading.Condition(self._lock)
        self._requests: dict[int, tuple[Running, Sink]] = {}
        self._sinks: dict[int, Sink] = {}  # of requests on token ids
        self._ids, self._raw_ids = itertools.count(1), itertools.count(_RAW_IDS)
        self.pace = Pace()
        self._to_abort: queue.SimpleQueue[int] = queue.SimpleQueue()
        # the reason why the engine accepts no more requests; None while it does
        self._failure: BaseException | None = None
        self._closed = False
        core.start()
        self.pulse = Pulse(core.stats, self._opened)
        self._thread = threading.Thread(target=self._poll, name="wherry-events", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Tell whether the engine has failed and accepts no request."""
        return self._failure is not None

    @property
    def active(self) -> int:
        """Return the number of core requests that run or wait."""
        return sum(running.jobs for running, _ in [*self._requests.values()]) + len(self._sinks)

    def _opened(self) -> int:
        """Return the number of requests that the core has or gets."""
        running = [running for running, _ in [*self._requests.values()]]
        return sum(one.submitted for one in running) + len(self._sinks)

    def begin(self, request: HostRequest, sink: Sink, caller: Caller, jobs: int) -> Running:
        """Plan a request on this thread and submit it.

        Args:
            request: the request, which has been checked.
            sink: receives its messages.
            caller: the client.
            jobs: number of core requests that count for `limit`.

        Raises:
            Abandoned: the client has gone.
            BusyError: `limit` is reached.
            RequestError: the request cannot be served, or exceeds `limit` alone.
            WherryError: the engine is closed or has failed.
        """
        with self._lock:
            self._check_open()
            self.check_room(jobs)
            running = Running(next(self._ids), jobs, self.abort, self._totals)
            # known before its first message can arrive
            self._requests[running.id] = running, sink
        self.pulse.stir()
        try:
            with self._calling():
                if failure := self.host.start(running.id, request, caller, running.submit):
                    running.failure = failure
        except BaseException:
            self._requests.pop(running.id, None)
            raise
        return running

    def prompt(self, fields: Any, caller: Caller, *, add_special_tokens: bool) -> list[int]:
        """Return the tokens of a chat's messages; errors as in `begin`."""
        with self._calling():
            return self.host.prompt(fields, caller, add_special_tokens=add_special_tokens)

    def _totals(self, request_id: int) -> bytes | None:
        try:
            with self._calling():
                return self.host.totals(request_id)
        except WherryError:  # the engine is closed
            return None

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Keep the host open during a call; errors as of `_check_open`."""
        with self._lock:
            self._check_open()
            self._calls += 1
        try:
            yield
        finally:
            with self._returned:
                self._calls -= 1
                self._returned.notify_all()

    def wait_for(self, request_id: int, grammar: Future[Any]) -> None:
        """Note the grammar that a request waits for, so that it is given up with the request."""
        if known := self._requests.get(request_id):
            known[0].waits = grammar

    def fail(self, request_id: int, error: WherryError) -> None:
        """End a request that waits for its grammar with an error."""
        if known := self._requests.get(request_id):
            known[0].failure = error
        with suppress(WherryError), self._calling():
            self.host.refuse(request_id, error)

    def constrain(self, request_id: int, grammar: OutputGrammar) -> None:
        """Submit a request that waits for its grammar."""
        if known := self._requests.get(request_id):
            known[0].submit()
        with suppress(WherryError), self._calling():  # a closed engine has ended the request
            self.host.constrained(request_id, grammar)

    def submit(self, job: Job, sink: Sink) -> int:
        """Submit a request on token ids to the core, and return its id.

        Raises:
            BusyError: `limit` is reached.
            WherryError: the engine is closed or has failed.
            UsageError: the core refuses the job.
        """
        with self._lock:
            self._check_open()
            self.check_room(1)
            request_id = next(self._raw_ids)
            self._sinks[request_id] = sink
            self.pulse.stir()
            try:
                self._core.add(request_id, job.prompt, job.params)
            except BaseException:
                self._sinks.pop(request_id, None)
                raise
        return request_id

    def abort(self, request_id: int) -> None:
        """Abort a request, which gives no further message; the poller's thread tells the core.

        A request that has ended is ignored.
        """
        known = self._requests.pop(request_id, None), self._sinks.pop(request_id, None)
        if not any(known):
            return
        self._to_abort.put(request_id)
        # If another thread holds the lock, the poller is not woken: it looks again within _WAIT_MS.
        if self._lock.acquire(blocking=False):
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
        with self._returned:
            self._returned.wait_for(lambda: not self._calls)
        self._fail_all(self._failure)
        self.host.close()
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
        if self.limit is None or (active := self.active) + jobs <= self.limit:
            return
        if jobs > self.limit:
            raise RequestError(
                f"The request asks for {jobs} outputs at once (n for each prompt); at most "
                f"{self.limit} are queued",
                param="n",
            )
        raise BusyError(
            f"{active} outputs are running or queued, of at most {self.limit}. "
            "Try again in a moment.",
            retry_after=self.pace.seconds_until(active + jobs - self.limit),
        )

    def _poll(self) -> None:
        try:
            while self._failure is None:
                records = self._core.wait(_WAIT_MS)
                while not self._to_abort.empty():
                    self._abort(self._to_abort.get())
                items: list[Item] = self._raw(records) if self._sinks else []
                self._deliver([*items, *self._route(self.host.hear(records))])
        except Exception as e:
            _log.exception("The engine has failed")
            with self._lock:
                self._failure = self._failure or e
            self._fail_all(e)

    def _abort(self, request_id: int) -> None:
        if request_id >= _RAW_IDS:
            self._core.abort(request_id)
        else:
            self.host.abort(request_id)

    def _route(self, messages: Sequence[tuple[int, Message]]) -> list[Item]:
        """Return the messages by the sinks of their requests."""
        batches: dict[int, list[Any]] = {}
        for request_id, message in messages:
            if message.kind == ERROR:
                self.pulse.stir()  # a read of the counters shows whether the next step works
            batches.setdefault(request_id, []).append(message)
        items: list[Item] = []
        for request_id, batch in batches.items():
            ended = batch[-1].kind >= LAST
            known = (self._requests.pop if ended else self._requests.get)(request_id, None)
            if known is None:  # an aborted request has no sink any more
                continue
            if ended:
                self.pace.note(known[0].jobs)
            items.append((known[1], batch))
        return items

    def _raw(self, records: Records) -> list[Item]:
        """Return the events of requests on token ids by their sinks."""
        batches: defaultdict[Sink, list[Any]] = defaultdict(list)
        for event in events_of(records):
            known = self._sinks.pop if event.finish else self._sinks.get
            if (sink := known(event.id, None)) is not None:
                batches[sink].append(event)
        return [*batches.items()]

    def _fail_all(self, error: BaseException) -> None:
        sinks = [sink for _, sink in [*self._requests.values()]] + [*self._sinks.values()]
        self._requests.clear()
        self._sinks.clear()
        self._deliver([(sink, error) for sink in sinks])

    def _deliver(self, items: Sequence[Item]) -> None:
        loops: defaultdict[asyncio.AbstractEventLoop, list[Item]] = defaultdict(list)
        for sink, item in items:
            if sink.loop is None:
                sink.deliver(item)
            else:
                loops[sink.loop].append((sink, item))
        # each loop is woken once, even if several of its requests have messages
        for loop, batch in loops.items():
            try:
                loop.call_soon_threadsafe(_deliver_here, batch)
            except RuntimeError:  # the loop is closed, and its requests ended with it
                _log.debug("%d requests of an event loop that has ended", len(batch))


def _deliver_here(batch: Sequence[Item]) -> None:
    for sink, item in batch:
        sink.deliver(item)
