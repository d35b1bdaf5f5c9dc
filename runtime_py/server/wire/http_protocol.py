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
from .socket_protocol import PATHS, SocketProtocol

# h11 events that are handled at once: a chunk of one byte costs as much as one of a MiB
_EVENTS = 256
_MOST_HEAD = 2**16  # bytes of a request's headers
_BUFFER = 2**20  # received bytes that are not handled yet
_SHUTDOWN_SECONDS = 1.0  # time for the last bytes of an answer when its connection is closed


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of one connection, and of all together."""

    connections: int = 512
    # seconds from the first byte, or from the connection, to the end of the headers
    head_seconds: float = 10
    body_seconds: float = 120  # seconds for the whole body
    write_seconds: float = 60  # seconds that a client may leave an answer unread


class ServerConfig(uvicorn.Config):
    """Uvicorn's configuration with connection limits.

    Attributes:
        unread: bytes of incomplete WebSocket messages of all connections.
    """

    def __init__(self, app: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(
            app,
            http=HttpProtocol,
            ws=SocketProtocol,
            ws_per_message_deflate=False,  # compression turns one byte into a thousand
            **options,
        )
        self.limits = limits
        self.unread = 0


class _Connection(h11.Connection):
    """h11's connection, which stops after a number of events.

    Attributes:
        events_left: the remaining number.
        refusal: reason to refuse a request that h11 accepts.
        media_type: of the answer that has begun.
    """

    def __init__(self, most_head: int) -> None:
        super().__init__(h11.SERVER, most_head)
        self.events_left = _EVENTS
        self.refusal = ""
        self.media_type = b""

    @property
    def pending(self) -> int:
        """Received bytes that are not handled."""
        return len(self._receive_buffer)

    def next_event(self) -> Any:
        if self.events_left == 0:
            return h11.NEED_DATA
        self.events_left -= 1
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._check_length(event)
        return event

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        if isinstance(event, h11.Response):
            self.media_type = dict(event.headers).get(b"content-type", b"")
        return super().send_with_data_passthrough(event)

    def _check_length(self, request: h11.Request) -> None:
        """Refuse two lengths: a proxy may see two requests in them (RFC 9112, section 6.3)."""
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
            self.refusal = "it has Content-Length and Transfer-Encoding; send one of them"
            raise h11.RemoteProtocolError(self.refusal)


class HttpProtocol(H11Protocol):
    """One connection.

    If there are too many connections, the one that has waited longest for a request is closed: a
    client that opens hundreds of silent connections only loses its own.
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
        self._waits_for: str | None = None  # "head" or "body" of a request, or None
        self._waits_since = 0.0  # the loop's time
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._half_closed = HalfClosed(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for a request."""
        # Transports of other event loops (uvloop) do not derive from asyncio.Transport.
        super().connection_made(cast("asyncio.Transport", transport))
        self._wait_for("head")
        if len(self.connections) > self._limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._wait_for(None)
        self._half_closed.end()
        self.resume_writing()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never keeps it open
        """The client has closed its sending side; return whether it may still get its answer."""
        whole = self.cycle is not None and not self.cycle.more_body
        # asyncio cannot keep TLS half open
        if not whole or self.cycle.response_complete or self.scheme == "https":
            return False
        self._half_closed.begin()
        return True

    def data_received(self, data: bytes) -> None:
        """Handle received bytes, or the first of them."""
        if self.conn.pending > _BUFFER:
            self.refuse(ApiError(400, "The request comes in too small chunks", code="invalid_http"))
            return
        super().data_received(data)

    def handle_events(self) -> None:
        """Handle some events; other tasks run before the rest of a long list."""
        if self.transport.is_closing():
            return
        self.conn.events_left = _EVENTS
        super().handle_events()
        if self.conn.events_left == 0:
            self.flow.pause_reading()
            self.loop.call_soon(self._handle_rest)
        self._watch()

    def _handle_rest(self) -> None:
        self.flow.resume_reading()
        self.handle_events()

    def on_response_complete(self) -> None:
        """See H11Protocol; the next request in the buffer is timed, too."""
        super().on_response_complete()
        if self._half_closed.begun and self.cycle.response_complete:  # no pipelined request is left
            self.transport.close()
            return
        self._watch()

    # ---- time ----

    def _watch(self) -> None:
        if self.transport.get_protocol() is not self:  # a WebSocket's protocol has taken over
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
        """The client does not read: start a timeout."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(
                self._limits.write_seconds, self.transport.abort
            )

    def resume_writing(self) -> None:
        """The client has read."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    # ---- connection limit ----

    @property
    def idle_since(self) -> float | None:
        """Since when the connection waits for its client; None while a request is served."""
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
            _, longest = min(waiting, key=lambda found: found[0])
            # at once, so that the next connection finds another one
            self.connections.discard(longest)
            longest.transport.abort()
        else:
            self.refuse(ApiError(503, "Too many connections", code="too_many_connections"))

    # ---- refusals ----

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP, in OpenAI's shape."""
        reason = self.conn.refusal or msg
        self.refuse(ApiError(400, f"This is no HTTP request: {reason}", code="invalid_http"))

    def refuse(self, error: ApiError) -> None:
        """Answer with an error if no answer has begun, and close."""
        self._wait_for(None)
        if self.cycle is not None:  # drop what the application still sends
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            made = response(error)
            headers = [*made.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=error.status_code, headers=headers),
                h11.Data(data=bytes(made.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # an answer has begun
            self.transport.abort()
            return
        self.transport.close()
        self.loop.call_later(_SHUTDOWN_SECONDS, self.transport.abort)

    def _should_upgrade_to_ws(self) -> bool:
        """Whether to accept an upgrade to WebSocket; otherwise HTTP continues (RFC 9110)."""
        return self.scope["method"] == "GET" and self.scope["path"] in PATHS

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: any client could fill the log."""
