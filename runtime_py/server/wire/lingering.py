"""Closes connections whose client still sends, so that it gets the response first.

A system that closes a connection with unread bytes resets it, and the client loses what it has not
read yet: the 413 that says why. So the sending side is closed, and what arrives is dropped for a
while (RFC 9112, 9.6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LINGER_SECONDS = 1.0


class LingeringTransport:
    """A transport whose `close` lets a client that still sends read the response.

    Everything else is the wrapped transport's.

    Args:
        transport: the transport of a connection.
        sends: whether the client may still send a part of its request.
    """

    def __init__(self, transport: asyncio.Transport, sends: Callable[[], bool]) -> None:
        self._transport = transport
        self.write = transport.write  # for each chunk, so not by __getattr__
        self._sends = sends
        self._lingers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether nothing more can be sent; bytes that arrive then are to be dropped."""
        return self._lingers or self._transport.is_closing()

    def close(self) -> None:
        """Close the connection; `linger` if the client still sends."""
        if self._sends() and not self.is_closing():
            self.linger()
        else:
            self._transport.close()

    def linger(self) -> None:
        """Close the sending side now and the connection later."""
        self._lingers = True
        if self._transport.can_write_eof():  # TLS cannot close one side
            with suppress(OSError):  # the client has gone
                self._transport.write_eof()
        self._transport.resume_reading()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)

    def close_at_once(self) -> None:
        """Close the connection as soon as what was written is sent."""
        self._transport.close()
