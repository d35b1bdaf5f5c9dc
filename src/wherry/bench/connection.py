"""An HTTP/1.1 client for many streams: h11 on asyncio's transports, without a task per piece.

Pieces are timed in `data_received`: waking a task for each token would measure the client itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import urlsplit

import h11

from wherry.errors import UsageError

# arguments: time in seconds of perf_counter, and the piece of data
OnData = Callable[[float, bytes], None]
_LARGEST_HEADER = 65536  # bytes


class ConnectionLostError(OSError):
    """The connection ended before the response was complete."""

    def __init__(self, message: str, *, unanswered: bool) -> None:
        super().__init__(message)
        self.unanswered = unanswered  # whether no byte of a response has arrived


@dataclass(frozen=True, slots=True)
class TargetAddress:
    """The address of a server's API."""

    scheme: str
    host: str
    port: int
    path: str  # prefix of all paths, "/v1"

    @classmethod
    def parse(cls, url: str) -> TargetAddress:
        """Parse http://HOST[:PORT][/PATH]; without a path it is /v1.

        Raises:
            UsageError: the text is no such URL.
        """
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as e:
            raise UsageError(f"{url!r} is not a URL: {e}. Type: --url http://127.0.0.1:8000") from e
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is not an HTTP URL. Type: --url http://127.0.0.1:8000")
        port = port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/") or "/v1")

    @property
    def authority(self) -> str:
        """Return host and port as in the Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{name}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


class Connection(asyncio.Protocol):
    """A connection for one exchange at a time, reused while the server allows it."""

    def __init__(self) -> None:
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEADER)
        self._transport: asyncio.Transport | None = None
        self._ended: asyncio.Future[None] | None = None
        self._on_data: OnData = lambda when, data: None
        self._response: h11.Response | None = None

    @classmethod
    async def open(cls, to: TargetAddress) -> Connection:
        """Open a connection to an address.

        Raises:
            OSError: the connection failed.
        """
        secure = ssl.create_default_context() if to.scheme == "https" else None
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, to.host, to.port, ssl=secure)
        return connection

    @property
    def reusable(self) -> bool:
        """Return whether another exchange may follow on this connection."""
        alive = self._transport is not None and not self._transport.is_closing()
        return alive and self._parser.our_state is h11.IDLE

    async def exchange(self, request: h11.Request, body: bytes, on_data: OnData) -> h11.Response:
        """Send a request; return status and headers when the whole response has arrived.

        Raises:
            ConnectionLostError: the connection ended earlier. h11.RemoteProtocolError: the bytes
                are not HTTP.
        """
        assert self._transport is not None and self.reusable
        self._on_data, self._response = on_data, None
        self._ended = asyncio.get_running_loop().create_future()
        head = self._parser.send(request) or b""
        data = self._parser.send(h11.Data(data=body)) or b"" if body else b""
        end = self._parser.send(h11.EndOfMessage()) or b""
        self._transport.write(head + data + end)
        try:
            await self._ended
        except BaseException:
            self.close()
            raise
        assert self._response is not None
        if self._parser.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            self._parser.start_next_cycle()
        else:
            self.close()
        return self._response

    def close(self) -> None:
        """Close the connection; idempotent."""
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of asyncio.Protocol follow.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and record their time."""
        now = perf_counter()
        if self._ended is None or self._ended.done():  # no request is waiting
            self.close()
            return
        try:
            self._parser.receive_data(data)
            self._take(now)
        except h11.RemoteProtocolError as e:
            self._fail(e)

    def eof_received(self) -> None:
        """Handle the server's end of the stream: end of a response, or of an idle connection."""
        if self._response is None:
            self.connection_lost(None)
        elif self._ended is not None and not self._ended.done():
            self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the waiting request, because the connection ended."""
        text = f"the connection was closed{f': {exc}' if exc else ' before the answer had ended'}"
        self._fail(ConnectionLostError(text, unanswered=self._response is None))

    def _take(self, now: float) -> None:
        assert self._ended is not None
        while not self._ended.done():
            event = self._parser.next_event()
            if event is h11.NEED_DATA:
                return
            if isinstance(event, h11.Response):
                self._response = event
            elif isinstance(event, h11.Data):
                self._on_data(now, bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._ended.set_result(None)
            elif isinstance(event, h11.ConnectionClosed):
                self.connection_lost(None)

    def _fail(self, error: Exception) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error)
