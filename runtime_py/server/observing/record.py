"""What a server knows of one request while it is under way. No content is in it."""

from __future__ import annotations

import re
import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...answer.generation import Generation

_ACCEPTED_ID = re.compile(
    r"[A-Za-z0-9._:/+=@-]{1,128}"
)  # of a client: it goes into logs and headers


@dataclass(slots=True)
class RequestRecord:
    """One request.

    Attributes:
        id: X-Request-Id, the client's or one of ours.
        client: its address; "local" on a Unix socket.
        trace_headers: traceparent and tracestate, as the client sent them.
        started: time.monotonic(); the others of this kind, too.
        wall_ns: when it started, nanoseconds since 1970.
        deadline: when its time is over; None: never.
        time_limit: from `started` to `deadline`, seconds.
        own_limit: it was the client who asked for it.
        route: the path as it was declared; "other" for paths that nobody declared.
        status: of the answer; 0 as long as none was begun.
        error: code of the error that it ended with, in the middle of a stream, too.
        key: name of the key that it came with.
        model: that answers it.
        generation: the answer, if a model writes one.
        tokens_read: for embeddings, scores and rankings.
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
    generation: Generation | None = None
    tokens_read: int = 0
    ended: float | None = None

    def begun(self, model: str, generation: Generation, *, stream: bool) -> None:
        """A model writes the answer from now on."""
        self.model, self.generation, self.stream = model, generation, stream

    @property
    def seconds(self) -> float:
        """Since it began, until its end."""
        return (self.ended or time.monotonic()) - self.started

    @property
    def seconds_left(self) -> float | None:
        """Before its deadline, at least 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def first_token_seconds(self) -> float | None:
        """From its beginning to its first token."""
        first = self.generation.first_at if self.generation else None
        return None if first is None else first - self.started

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and of the output so far."""
        return self.generation.usage.total_tokens if self.generation else self.tokens_read

    @property
    def outcome(self) -> str:
        """How it ended: the code of an error, or why the model stopped."""
        if self.error:
            return self.error
        found = self.generation.finishes if self.generation else []
        return next((finish for finish in found if finish), "error")


_current: ContextVar[RequestRecord] = ContextVar("wherry_request")


def current() -> RequestRecord:
    """The record of the request that this task serves; outside of a request, a new one."""
    try:
        return _current.get()
    except LookupError:
        return RequestRecord(new_id())


def set_current(record: RequestRecord) -> None:
    """For this task, and for those that it starts."""
    _current.set(record)


def new_id() -> str:
    """A name for a request."""
    return f"req-{secrets.token_hex(12)}"


def accepted_id(asked: str) -> str:
    """The client's own name for its request, if logs and headers can hold it, or a new one."""
    return asked if _ACCEPTED_ID.fullmatch(asked) else new_id()
