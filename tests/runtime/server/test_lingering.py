"""Closes of connections whose client still sends."""

from __future__ import annotations

import asyncio
import errno

from wherry.runtime.server.wire import lingering


class GoneTransport:
    """Of a client that has gone: the system closes no side of it."""

    aborted = False

    def write(self, data):
        raise AssertionError("nothing is left to say")

    def is_closing(self):
        return False

    def can_write_eof(self):
        return True

    def write_eof(self):
        raise OSError(errno.ENOTCONN, "not connected")

    def resume_reading(self):
        pass

    def abort(self):
        self.aborted = True


def test_a_client_that_has_gone(monkeypatch):
    """A server that stops closes one connection after the other; none may raise."""
    monkeypatch.setattr(lingering, "LINGER_SECONDS", 0)
    transport = GoneTransport()

    async def close():
        wrapped = lingering.LingeringTransport(transport, lambda: True)
        wrapped.close()
        assert wrapped.is_closing()
        await asyncio.sleep(0.01)

    asyncio.run(close())
    assert transport.aborted
