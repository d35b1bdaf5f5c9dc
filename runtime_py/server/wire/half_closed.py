"""Handles clients that have closed their sending side: they may wait for a response, or be gone.

Only writing tells these apart: the system of a client that is gone refuses the bytes. So bytes that
do not change the response are written from time to time: `100 Continue` before it, a comment or a
space between the chunks of a stream.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11

if TYPE_CHECKING:
    from .http_protocol import HttpProtocol

_SOON = 0.05  # seconds between the first two writes; a refusal takes a network round trip
_LATER = 1.0  # seconds between later writes, and the time limit if nothing can be written
# Bytes without meaning that may be written between two chunks of each media type.
_NOTHING = {b"text/event-stream": b":\n\n", b"application/x-ndjson": b" "}


class HalfClosed:
    """Checks whether a client is there, until its response is written.

    Args:
        protocol: the HTTP protocol of the connection.
    """

    def __init__(self, protocol: HttpProtocol) -> None:
        self._protocol = protocol
        self._timer: asyncio.TimerHandle | None = None
        self.begun = False

    def begin(self) -> None:
        """Start the checks, because the client has closed its sending side.

        Later calls do nothing.
        """
        if not self.begun:
            self.begun = True
            self._write(_SOON)

    def end(self) -> None:
        """Stop the checks, because the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()

    def _write(self, pause: float) -> None:
        protocol = self._protocol
        if protocol.transport.is_closing():
            return
        data = b"" if protocol.flow.write_paused else self._nothing()
        loop = protocol.loop
        if data is None:
            self._timer = loop.call_later(_LATER, self._give_up)
            return
        if data:
            protocol.transport.write(data)
        self._timer = loop.call_later(pause, self._write, _LATER)

    def _give_up(self) -> None:
        if self._protocol.conn.our_state is h11.SEND_RESPONSE:
            self._protocol.transport.abort()
        else:
            self._write(_LATER)

    def _nothing(self) -> bytes | None:
        """Return bytes that do not change the response; None: there are none at this point."""
        conn = self._protocol.conn
        if conn.our_state is h11.SEND_BODY:
            kind = conn.media_type.partition(b";")[0]
            return conn.send(h11.Data(data=_NOTHING[kind])) if kind in _NOTHING else b""
        if conn.our_state is not h11.SEND_RESPONSE:
            return b""
        if conn.their_http_version == b"1.0":  # HTTP/1.0 has no informational responses
            return None
        goes_on: bytes = conn.send(h11.InformationalResponse(status_code=100, headers=[]))
        return goes_on
