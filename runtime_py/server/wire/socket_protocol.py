"""Uvicorn's WebSocket protocol for untrusted clients: limits, and JSON errors."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import wsproto
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto import events
from wsproto.connection import ConnectionState

from .errors import ApiError, body

if TYPE_CHECKING:
    from uvicorn.server import ServerState

    from .http_protocol import ServerConfig

PATHS = frozenset({"/v1/responses"})  # paths that accept an upgrade to WebSocket
# number of events that are handled in one turn; a frame of one byte costs as much as 64 KiB
_EVENTS = 256
UNREAD = 8  # maximum size of all incomplete messages, in units of the largest message
_SHUTDOWN_SECONDS = 1.0  # seconds to send the last messages of a connection when the server ends
_TRY_LATER, _TOO_BIG, _POLICY = 1013, 1009, 1008  # WebSocket close codes
_log = logging.getLogger(__name__)


class _Connection(wsproto.WSConnection):
    """A wsproto connection that returns only some events at a time."""

    def __init__(self) -> None:
        super().__init__(wsproto.ConnectionType.SERVER)
        self.given = 0

    def events(self) -> Iterator[events.Event]:  # type: ignore[override] # what is left is kept
        self.given = 0
        for event in islice(super().events(), _EVENTS):
            self.given += 1
            yield event


class SocketProtocol(WSProtocol):
    """The protocol of one WebSocket connection, after the headers of its handshake."""

    config: ServerConfig

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn: _Connection = _Connection()
        self.logger = _log  # the request log replaces uvicorn's log lines
        self._limits = config.limits
        self._unread = 0  # number of received bytes in an incomplete message
        self._slow: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def idle_since(self) -> float | None:
        """Return since when the connection waits for its client; None while it serves a message."""
        state = getattr(self, "scope", {}).get("state", {})
        since: float | None = state.get("idle_since")
        return since

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of a closed connection, and drop received bytes."""
        self._note_complete()
        self.resume_writing()
        # The connection is added, because an eviction may have removed it and uvicorn will remove
        # it again.
        self.connections.add(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle some events; other tasks run before the rest of a long list."""
        if self.transport.is_closing():
            return
        super().handle_events()
        if self.conn.given == _EVENTS:
            self.transport.pause_reading()
            self.loop.call_soon(self._handle_rest)

    def _handle_rest(self) -> None:
        if self.transport.is_closing():
            return
        if not self.read_paused:
            self.transport.resume_reading()
        self.handle_events()

    def handle_message(self, event: events.TextMessage | events.BytesMessage) -> None:
        """Handle a piece of a message, if the limits allow it."""
        data = event.data
        size = len(data.encode()) if isinstance(data, str) else len(data)
        self._unread += size
        self.config.unread += size
        most = self.config.ws_max_size
        if self._unread > most:
            text = f"The message has more than {most} bytes, the maximum that is accepted"
            self.refuse(ApiError(413, text, code="request_too_large"), _TOO_BIG)
        elif self.config.unread > UNREAD * most:
            text = "Too many large messages at once; try again in a moment"
            self.refuse(ApiError(429, text, code="queue_full"), _TRY_LATER)
        else:
            super().handle_message(event)
            if event.message_finished:
                self._note_complete()
            elif self._slow is None:
                self._slow = self.loop.call_later(self._limits.body_seconds, self._too_slow)

    def handle_close(self, event: events.CloseConnection) -> None:
        """Handle a close frame, or bytes that are no WebSocket frames.

        Wsproto reports both alike.
        """
        if self.conn.state is ConnectionState.OPEN and not self.close_sent:
            text = f"This is not a WebSocket message: {event.reason or 'its frame is damaged'}"
            self.refuse(ApiError(400, text, code="invalid_websocket"), event.code)
        else:
            super().handle_close(event)

    def _note_complete(self) -> None:
        self.config.unread -= self._unread
        self._unread = 0
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _too_slow(self) -> None:
        text = f"The message took more than {self._limits.body_seconds:g} s"
        self.refuse(ApiError(408, text, code="too_slow"), _POLICY)

    def refuse(self, error: ApiError, code: int) -> None:
        """Send an error and close the connection with this code."""
        self._note_complete()
        self.stop_keepalive()
        if self.close_sent or self.transport.is_closing():
            return
        said = {"type": "error", "status": error.status_code, **body(error)}
        self.transport.write(self.conn.send(events.Message(data=json.dumps(said))))
        self.transport.write(self.conn.send(events.CloseConnection(code=code)))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code})
        self.transport.close()

    def pause_writing(self) -> None:
        """Start a timeout, because the client does not read."""
        super().pause_writing()
        if self._write_timer is None:
            seconds = self._limits.write_seconds
            self._write_timer = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timeout, because the client has read."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def shutdown(self) -> None:
        """Ask the application to send its last message and to close, because the server ends."""
        if not self.handshake_complete or self.close_sent:
            super().shutdown()
            return
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1012})
        self.loop.call_later(_SHUTDOWN_SECONDS, self.transport.abort)
