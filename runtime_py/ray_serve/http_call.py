"""An HTTP request as a value, and an ASGI application's response in a few large pieces."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message

_log = logging.getLogger(__name__)
REPLICA_HEADER = b"x-wherry-replica"  # response header that names the replica which answered
Headers = tuple[tuple[bytes, bytes], ...]
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
)  # hop-by-hop headers of RFC 9110, which are not forwarded
# strong references to running tasks, because the event loop has only weak ones
_calls: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole HTTP request, which can be sent between processes."""

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes
    scheme: str = "http"
    client: tuple[str, int] | None = None
    prefix: bytes = b""  # hash keys of the prompt's blocks, from prompt_prefix.py
    kept: int | None = None  # hash key of the stored item that the request names, from kept.py

    def scope(self) -> dict[str, Any]:
        """Return the ASGI scope of the request."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": self.scheme,
            "path": self.path,
            "raw_path": self.path.encode(errors="surrogateescape"),
            "root_path": "",
            "query_string": self.query,
            "headers": [(name, value) for name, value in self.headers if name not in _HOP_BY_HOP],
            "client": self.client,
            "server": None,
        }


@dataclass(frozen=True, slots=True)
class Head:
    """The status and headers of a response, with the first bytes of its body."""

    status: int
    headers: Headers
    body: bytes = b""


async def answers(
    app: ASGIApp, request: HttpRequest, interval: Callable[[], float]
) -> AsyncGenerator[Head | bytes, None]:
    """Yield the response of `app`: a Head, then bytes.

    If the caller stops, `app` sees that the client disconnects. The first bytes come at once, later
    ones joined: each piece costs each process on its way about a millisecond, whatever its size.

    Args:
        app: the ASGI application that answers.
        request: the HTTP request.
        interval: returns the minimum seconds between two pieces.

    Raises:
        RuntimeError: the application failed after its first byte, or ended without one.
    """
    call = _Call(app, request)
    try:
        yield await call.head()
        while piece := await call.piece(interval):
            yield piece
    finally:
        call.gone.set()


async def check_health(app: ASGIApp) -> None:
    """Request /health from the server in this process.

    Raises:
        RuntimeError: the engine has failed, or is stuck.
    """
    ask = HttpRequest("GET", "/health", b"", (), b"")
    async with aclosing(answers(app, ask, lambda: 0.0)) as pieces:
        head = await anext(pieces)
    assert isinstance(head, Head)
    if head.status != 200:
        raise RuntimeError(f"/health is {head.status}: {head.body.decode()}")


class _Call:
    """The task that runs an application for one request."""

    def __init__(self, app: ASGIApp, request: HttpRequest) -> None:
        self.gone = asyncio.Event()
        self._request: HttpRequest | None = request
        self._start: Message | None = None
        self._ready: list[bytes] = []
        self._news = asyncio.Event()
        self._complete = False
        self._taken_at = 0.0
        self._task = asyncio.ensure_future(app(request.scope(), self._receive, self._send))
        self._task.add_done_callback(self._ended)
        _calls.add(self._task)

    async def head(self) -> Head:
        """Await the first byte of the body, or its end, and return the head."""
        while not (self._ready or self._complete):
            await self._next()
        if self._start is None:
            raise RuntimeError("The application ended without an answer")
        return Head(self._start["status"], tuple(self._start["headers"]), self._taken())

    async def piece(self, interval: Callable[[], float]) -> bytes:
        """Await the next bytes of the body; b"" at the end."""
        while not (self._ready or self._complete):
            await self._next()
        wait = self._taken_at + interval() - time.monotonic()
        if self._ready and not self._complete and wait > 0:
            await asyncio.wait({self._task}, timeout=wait)
        return self._taken()

    def _taken(self) -> bytes:
        self._taken_at = time.monotonic()
        piece = b"".join(self._ready)
        self._ready.clear()
        return piece

    async def _next(self) -> None:
        if self._task.done() and not self._complete:
            error = None if self._task.cancelled() else self._task.exception()
            raise RuntimeError("The application ended in the middle of an answer") from error
        await self._news.wait()
        self._news.clear()

    def _ended(self, task: asyncio.Task[None]) -> None:
        _calls.discard(task)
        self._news.set()
        if not task.cancelled() and (error := task.exception()):
            _log.error("A request has failed", exc_info=error)

    async def _receive(self) -> Message:
        if self._request is not None:
            body, self._request = self._request.body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self.gone.is_set():
            # the ASGI specification asks `send` to raise OSError for a disconnected client
            raise OSError("The client has gone away")
        if message["type"] == "http.response.start":
            self._start = message
        elif body := message.get("body", b""):
            self._ready.append(body)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._complete = True
        if self._ready or self._complete:
            self._news.set()
