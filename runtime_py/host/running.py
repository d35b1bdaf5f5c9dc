"""One request in flight: its messages from C++, and its counts so far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from ..core import host_abi as abi
from .services import error_of


class Totals(NamedTuple):
    """Counts and times of a request so far (the C struct `wherry_host_totals`)."""

    prompt: int = 0  # prompt tokens, each prompt counted once
    sampled: int = 0  # output tokens of all choices
    cached: int = 0  # prompt tokens found in the prefix cache
    drafted: int = 0  # verified draft tokens
    accepted: int = 0  # accepted draft tokens
    reasoning: int = 0  # output tokens of the reasoning
    queue: float = 0.0  # seconds that the request waited for its first step
    prefill: float = 0.0  # seconds from the first step to the first token
    decode: float = 0.0  # seconds from the first token to the last
    longest: int = 0  # output tokens of the longest choice
    since_first: float = -1.0  # seconds since the first event; -1: there is none
    since_last: float = -1.0  # seconds since the last event
    finish: int = 0  # index in abi.FINISHES


class Message(NamedTuple):
    """A message of C++ about a request."""

    kind: int
    data: bytes  # JSON
    totals: bytes  # the C struct


class Running:
    """A request in flight.

    Args:
        id: identifies the request for C++.
        jobs: the number of core requests that count for the queue's limit.
        abort: aborts the request of an id; may be called on any thread.
        totals: returns the C struct of an id's totals; None after its end.

    Attributes:
        waits: the grammar that the request waits for; `close` cancels it.
        failure: the error of Python that ends the request; None: C++ says what happened.
        submitted: whether the core has or gets the request, which waits for no grammar then.
        done: whether no further message comes.
        about: what C++ says of the request as it is planned (WHERRY_HOST_OPENED).
        first_at: time.monotonic() of the first event; None before.
    """

    def __init__(
        self,
        id: int,
        jobs: int,
        abort: Callable[[int], None],
        totals: Callable[[int], bytes | None],
    ) -> None:
        self.id, self.jobs = id, jobs
        self._abort, self._totals_of = abort, totals
        self._record: bytes | None = None  # the last C struct of totals
        self.waits: Future[Any] | None = None
        self.failure: BaseException | None = None
        self._failed = False
        self.submitted = False
        self.done = False
        self.about: dict[str, Any] | None = None
        self.first_at: float | None = None

    @property
    def opened(self) -> dict[str, Any]:
        """Return `about` after it has come."""
        assert self.about is not None, "the request has been opened"
        return self.about

    @property
    def totals(self) -> Totals:
        """Return counts and times so far."""
        return Totals(*abi.TOTALS.unpack(self._record)) if self._record else Totals()

    @property
    def token_seconds(self) -> float:
        """Return the seconds from the first event to the last."""
        totals = self.totals
        return totals.since_first - totals.since_last

    @property
    def finish(self) -> str | None:
        """Return why the first choice that ended did; None while all run."""
        return abi.FINISHES[self.totals.finish]

    def submit(self) -> None:
        """Note that the core gets the request now."""
        self.submitted = True

    def take(self, messages: Iterable[Message]) -> list[bytes]:
        """Note messages and return the JSON of chunks, of which the last one ends the response.

        An error after the request was opened is left to `check`, so that its response can begin.

        Raises:
            WherryError: the request failed before it was opened.
        """
        chunks = []
        for message in messages:
            self._note(message.totals)
            if message.kind == abi.OPENED:
                self.about = json.loads(message.data)
            elif message.kind == abi.ERROR:
                self.failure = self.failure or error_of(json.loads(message.data))
                self._failed = True
                if self.about is None:
                    self.check()
            else:
                self.done = message.kind != abi.CHUNK
                chunks.append(message.data)
        return chunks

    def check(self) -> None:
        """Raise the error that has ended the request, before more is awaited.

        Raises:
            WherryError: the request failed.
        """
        if self._failed:
            self.done = True
            assert self.failure is not None
            raise self.failure

    def _note(self, record: bytes) -> None:
        self._record = record
        if self.first_at is None and (since := self.totals.since_first) >= 0:
            self.first_at = time.monotonic() - since

    def look(self) -> None:
        """Update `totals`: messages of a response that is not streamed come at its end."""
        if not self.done and (record := self._totals_of(self.id)):
            self._note(record)

    def close(self) -> None:
        """Abort the request if it still runs; idempotent."""
        if not self.done:
            self.look()
            self.done = True
            if self.waits is not None:
                self.waits.cancel()
            self._abort(self.id)
