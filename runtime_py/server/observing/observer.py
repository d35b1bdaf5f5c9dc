"""The outermost ASGI middleware: it gives each request an id, and reports its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..life import Life
from ..wire.errors import response
from .record import RequestRecord, accepted_id, set_current

REQUEST_ID = "X-Request-Id"
ANTHROPIC_ID = "Request-Id"  # the header in which Anthropic's clients expect the request's id
ANTHROPIC_VERSION = "anthropic-version"
CUT_OFF = 499  # the logged status of a request that ended before it got a response
_TRACE_HEADERS = ("traceparent", "tracestate")
_log = logging.getLogger(__name__)
Watcher = Callable[[RequestRecord], None]


class Observer:
    """Identifies and counts requests, and reports their ends to the watchers.

    Args:
        app: the next ASGI application.
        life: the server's state.
        watchers: called with the record at the end of each request, on the event loop.
        paths: the declared paths; needed for requests that are refused before routing.
    """

    def __init__(
        self, app: ASGIApp, *, life: Life, watchers: Sequence[Watcher], paths: Collection[str]
    ) -> None:
        self._app = app
        self._paths = paths
        self._life = life
        self._watchers = watchers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request and report its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = _record(scope)
        set_current(record)
        ids = [REQUEST_ID, *([ANTHROPIC_ID] if ANTHROPIC_VERSION in Headers(scope=scope) else ())]

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                MutableHeaders(scope=message).update(dict.fromkeys(ids, record.id))
            await send(message)

        try:
            with self._life.request(record.path):
                await self._app(scope, receive, noted)
        except Exception as e:
            if not record.status:
                await response(e, record.path)(scope, receive, noted)
            raise
        finally:
            self._end(scope, record)

    def _end(self, scope: Scope, record: RequestRecord) -> None:
        record.ended = time.monotonic()
        record.status = record.status or CUT_OFF
        path = record.path if record.path in self._paths else record.route
        record.route = getattr(scope.get("route"), "path", path)
        for watcher in self._watchers:
            try:
                watcher(record)
            # The response is sent already, so an error of the log or metrics must not break it.
            except Exception:
                _log.exception("A request's end could not be noted")


def _record(scope: Scope) -> RequestRecord:
    headers = Headers(scope=scope)
    given = headers.get(REQUEST_ID, "")
    client = scope.get("client")
    return RequestRecord(
        accepted_id(given),
        scope["method"],
        scope["path"],
        client[0] if client and client[0] else "local",
        tuple((name, headers[name]) for name in _TRACE_HEADERS if name in headers),
    )
