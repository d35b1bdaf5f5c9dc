"""Uvicorn's HTTP protocol for untrusted clients: timeouts, connection limits, JSON errors."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .errors import ApiError, response
from .half_closed import HalfClosed
from .lingering import LINGER_SECONDS, LingeringTransport
from .socket_protocol import PATHS, SocketProtocol
from .streams import WRITE_CHUNK

# Number of h11 events that are handled in one turn; an event may be a chunk of one byte or of one
# MiB.
_EVENTS = 256
_MOST_HEAD = 2**16  # maximum bytes of a request's headers
_BUFFER = 2**20  # maximum bytes that are received but not yet handled


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of one connection, and of all connections together."""

    connections: int = 512
    # Seconds from the connection, or from a request's first byte, to the end of its headers.
    head_seconds: float = 10
    body_seconds: float = 120  # seconds in which the whole body must arrive
    write_seconds: float = 60  # seconds that a client may leave a response unread


class ServerConfig(uvicorn.Config):
    """Uvicorn's configuration with connection limits.

    Attributes:
        unread: number of bytes in incomplete WebSocket messages of all connections.
    """

    def __init__(self, app: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(
            app,
            http=HttpProtocol,
            ws=SocketProtocol,
            # disabled, because compression lets one byte become a thousand
            ws_per_message_deflate=False,
            **options,
        )
        self.limits = limits
        self.unread = 0


class _Connection(h11.Connection):
    """An h11 connection that pauses after a number of events.

    Attributes:
        events_left: the remaining number of events.
        refusal: the reason to refuse a request that h11 accepts.
        media_type: media type of the response that has begun.
        is_chunked: whether it is sent in chunks.
    """

    def __init__(self, most_head: int) -> None:
        super().__init__(h11.SERVER, most_head)
        self.events_left = _EVENTS
        self.refusal = ""
        self.media_type = b""
        self.is_chunked = False

    @property
    def pending(self) -> int:
        """Return the number of received bytes that are not handled yet."""
        return len(self._receive_buffer)

    def next_event(self) -> Any:
        if self.events_left == 0:
            return h11.NEED_DATA
        self.events_left -= 1
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._check_length(event)
            event = _in_origin_form(event)
        return event

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        written = super().send_with_data_passthrough(event)
        if isinstance(event, h11.Response):
            self.media_type = dict(event.headers).get(b"content-type", b"")
            head = b"".join(written or ()).lower()
            self.is_chunked = b"\r\ntransfer-encoding: chunked\r\n" in head
        return written

    def _check_length(self, request: h11.Request) -> None:
        """Refuse a request with two lengths; a proxy may see two requests in it (RFC 9112, 6.3)."""
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
            self.refusal = "it has Content-Length and Transfer-Encoding; send one of them"
            raise h11.RemoteProtocolError(self.refusal)


def _in_origin_form(request: h11.Request) -> h11.Request:
    """Return a request whose target is a path; clients of proxies send a whole URL (RFC 9112, 3.2).

    The URL's host then takes the place of the header.
    """
    scheme, separator, rest = request.target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return request
    host, slash, path = rest.partition(b"/")
    headers = [(n, host if n == b"host" else value) for n, value in request.headers]
    return h11.Request(
        method=request.method,
        target=slash + path or b"/",
        headers=headers,
        http_version=request.http_version,
    )


class HttpProtocol(H11Protocol):
    """The protocol of one HTTP connection.

    If there are too many connections, the one that has waited longest for a request is closed: a
    client that opens hundreds of silent connections only loses its own connections.
    """

    config: ServerConfig

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn: _Connection = _Connection(_MOST_HEAD)
        self._limits = config.limits
        # part of a request that the connection waits for, "head" or "body"; None: it does not wait
        self._waits_for: str | None = None
        self._waits_since = 0.0  # the event loop's time at which the wait began
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._half_closed = HalfClosed(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for the first request of a new connection."""
        # Transports of other event loops (uvloop) do not derive from asyncio.Transport.
        given = cast("asyncio.Transport", transport)
        self._lingering = LingeringTransport(given, self._client_sends)
        super().connection_made(cast("asyncio.Transport", self._lingering))
        self._wait_for("head")
        if len(self.connections) > self._limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of a closed connection."""
        self._wait_for(None)
        self._half_closed.end()
        self.resume_writing()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never keeps it open
        """Note that the client has closed its sending side.

        Return whether it may still get a response.
        """
        complete = self.cycle is not None and not self.cycle.more_body
        # asyncio cannot keep a TLS connection half open.
        if not complete or self.cycle.response_complete or self.scheme == "https":
            return False
        self._half_closed.begin()
        return True

    def data_received(self, data: bytes) -> None:
        """Handle the received bytes, or the first of them if they have many events."""
        if self.transport.is_closing():
            return
        if self.conn.pending > _BUFFER:
            self.refuse(ApiError(400, "The request comes in too small chunks", code="invalid_http"))
            return
        super().data_received(data)

    def handle_events(self) -> None:
        """Handle some events; other tasks run before the rest of a long list."""
        if self.transport.is_closing():
            return
        self.conn.events_left = _EVENTS
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # its task has not begun
            cast("dict[str, Any]", self.cycle.scope)[WRITE_CHUNK] = self._write_chunk
        if self.conn.events_left == 0:
            self.flow.pause_reading()
            self.loop.call_soon(self._handle_rest)
        self._watch()

    def _write_chunk(self, data: bytes) -> bool:
        """Write a chunk of the response that runs; return False if `send` has to.

        It leaves h11's states as they are, and the way through uvicorn and h11 takes as long as the
        system's call that sends it.
        """
        if (
            not self.conn.is_chunked
            or self.conn.our_state is not h11.SEND_BODY
            or self.flow.write_paused
            or self.cycle.disconnected
            or not data
        ):
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def _handle_rest(self) -> None:
        self.flow.resume_reading()
        self.handle_events()

    def on_response_complete(self) -> None:
        """Start the timer for the next request in the buffer; extends H11Protocol."""
        super().on_response_complete()
        # the client sent no further pipelined request
        if self._half_closed.begun and self.cycle.response_complete:
            self.transport.close()
            return
        self._watch()

    # ---- Timeouts ----

    def _watch(self) -> None:
        # a WebSocket's protocol has taken over the connection
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            self._wait_for(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._wait_for("body")
        elif self.conn.their_state is h11.IDLE and self.conn.pending:
            self._wait_for("head")
        else:
            self._wait_for(None)

    def _wait_for(self, what: str | None) -> None:
        if what == self._waits_for:
            return
        self._waits_for, self._waits_since = what, self.loop.time()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if what is not None:
            limits = self._limits
            seconds = limits.head_seconds if what == "head" else limits.body_seconds
            self._timer = self.loop.call_later(seconds, self._too_slow, what, seconds)

    def _too_slow(self, what: str, seconds: float) -> None:
        part = "headers" if what == "head" else "body"
        self.refuse(
            ApiError(408, f"The request's {part} took more than {seconds:g} s", code="too_slow")
        )

    def pause_writing(self) -> None:
        """Start a timeout, because the client does not read."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(
                self._limits.write_seconds, self.transport.abort
            )

    def resume_writing(self) -> None:
        """Stop the timeout, because the client has read."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    # ---- Connection limit ----

    @property
    def idle_since(self) -> float | None:
        """Return since when the connection waits for its client; None while it serves a request."""
        if self.cycle is None or self.cycle.response_complete or self._waits_for == "body":
            return self._waits_since
        return None

    def _make_room(self) -> None:
        waiting = [
            (c.idle_since, c)
            for c in self.connections
            if isinstance(c, (HttpProtocol, SocketProtocol))
            and c is not self
            and c.idle_since is not None
        ]
        if waiting:
            _, longest = min(waiting, key=lambda pair: pair[0])
            # The connection is removed at once, so that the next new connection evicts another one.
            self.connections.discard(longest)
            if isinstance(longest, HttpProtocol) and longest.cycle is None:
                longest.refuse(_too_many(), lingers=False)  # its place is needed now
            else:  # a client may take bytes between two requests for the answer to the second
                longest.transport.abort()
        else:
            self.refuse(_too_many())

    # ---- Refused requests ----

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP, in OpenAI's shape."""
        reason = self.conn.refusal or msg
        self.refuse(ApiError(400, f"This is not an HTTP request: {reason}", code="invalid_http"))

    def refuse(self, error: ApiError, *, lingers: bool = True) -> None:
        """Send an error as the response if none has begun, and close the connection.

        With `lingers` the client has a second to read it, if it still sends its request.
        """
        self._wait_for(None)
        if self.cycle is not None:  # the connection drops what the application still sends
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            refusal = response(error)
            headers = [*refusal.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=error.status_code, headers=headers),
                h11.Data(data=bytes(refusal.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # a response has begun already
            self.transport.abort()
            return
        if lingers:
            self._lingering.linger()
        else:
            self._lingering.close_at_once()
            self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _client_sends(self) -> bool:
        """Tell whether the client may be sending a body that is not read to its end."""
        return self.conn.their_state is h11.SEND_BODY

    def _should_upgrade_to_ws(self) -> bool:
        """Tell whether to accept an upgrade to WebSocket; otherwise HTTP continues (RFC 9110)."""
        return self.scope["method"] == "GET" and self.scope["path"] in PATHS

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing, because any client could fill the log."""


def _too_many() -> ApiError:
    return ApiError(
        503,
        "Too many connections; try again in a moment",
        code="too_many_connections",
        headers={"Retry-After": "1"},
    )
