"""The record of one running request, without its content."""

from __future__ import annotations

import re
import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...host.running import Running

_ACCEPTED_ID = re.compile(
    r"[A-Za-z0-9._:/+=@-]{1,128}"
)  # a client's id may contain only these characters, because logs and headers repeat it


@dataclass(slots=True)
class RequestRecord:
    """The record of one request for the log, metrics and traces.

    Attributes:
        id: X-Request-Id, from the client or generated.
        client: the client's address; "local" on a Unix socket.
        trace_headers: the client's traceparent and tracestate.
        started: time.monotonic() at the start; the other times are on the same clock.
        wall_ns: start of the request, nanoseconds since 1970.
        deadline: when the request times out; None: never.
        time_limit: seconds from `started` to `deadline`.
        own_limit: whether the client asked for the time limit.
        route: the declared path; "other" for undeclared ones.
        status: status of the response; 0 before it begins.
        error: code of the error that ended the response, even in the middle of a stream.
        key: name of the client's key.
        model: name of the model.
        running: the request in the model; None: it asked for none.
    """

    id: str
    method: str = ""
    path: str = ""
    client: str = ""
    trace_headers: tuple[tuple[str, str], ...] = ()
    started: float = field(default_factory=time.monotonic)
    wall_ns: int = field(default_factory=time.time_ns)
    deadline: float | None = None
    time_limit: float | None = None
    own_limit: bool = False
    route: str = "other"
    status: int = 0
    error: str | None = None
    key: str | None = None
    model: str | None = None
    stream: bool = False
    running: Running | None = None
    ended: float | None = None

    def begun(self, model: str, running: Running, *, stream: bool) -> None:
        """Record that a model's response has begun."""
        self.model, self.running, self.stream = model, running, stream

    @property
    def written(self) -> Running | None:
        """Return the request in the model if it asks for text."""
        return self.running if self.running and "room" in self.running.opened else None

    @property
    def seconds(self) -> float:
        """Return the seconds from the request's start to its end, or to now."""
        return (self.ended or time.monotonic()) - self.started

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def first_token_seconds(self) -> float | None:
        """Return the seconds from the request's start to the first token; None before it."""
        first = self.running.first_at if self.running else None
        return None if first is None else first - self.started

    @property
    def tokens(self) -> int:
        """Return the number of tokens of prompt and output so far."""
        return self.running.totals.prompt + self.running.totals.sampled if self.running else 0

    @property
    def outcome(self) -> str:
        """Return how the request ended: the code of an error, or why the model stopped."""
        if self.error:
            return self.error
        return (self.running.finish if self.running else None) or "error"


_current: ContextVar[RequestRecord] = ContextVar("wherry_request")


def current() -> RequestRecord:
    """Return the record of this task's request; outside of a request, a new record."""
    try:
        return _current.get()
    except LookupError:
        return RequestRecord(new_id())


def set_current(record: RequestRecord) -> None:
    """Set the record of this task and of tasks that it starts."""
    _current.set(record)


def new_id() -> str:
    """Return a new random id of a request."""
    return f"req-{secrets.token_hex(12)}"


def accepted_id(requested: str) -> str:
    """Return the client's id if logs and headers can contain it, else a new one."""
    return requested if _ACCEPTED_ID.fullmatch(requested) else new_id()
