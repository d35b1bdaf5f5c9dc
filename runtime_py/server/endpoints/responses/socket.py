"""The WebSocket of /v1/responses: each message is a request, answered one after the other.

The same application serves each message as the POST that it stands for, so keys, limits, the log,
the metrics and the drain apply to it as to any request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import deque
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ...life import Life
from ...wire.errors import ApiError, shutting_down
from .exchange import Exchange, reject, request_of
from .local import LOCAL, Local
from .memory import Memory

PATH = "/v1/responses"
OPENED = "wherry.socket"  # key in the ASGI scope of a request for the handshake
SECONDS = 3600.0  # seconds after which a connection ends, by OpenAI's specification
MAX_WAITING = 16  # maximum number of a connection's messages that wait for the current response
_SERVER_ENDS = 1012  # WebSocket close code that tells a client that the server ends
_log = logging.getLogger(__name__)


class Sockets:
    """ASGI middleware that serves WebSockets and passes on everything else.

    Args:
        app: the application that answers the messages' requests.
        memory: the store of responses.
        life: the server's state.
        max_waiting: maximum bytes of waiting messages of all connections.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        memory: Memory,
        life: Life,
        max_waiting: int,
    ) -> None:
        self._app = app
        self._memory = memory
        self._life = life
        self._waiting = Waiting(max_waiting)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket connection, or pass on another request."""
        if scope["type"] != "websocket" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        await receive()  # the first message is always websocket.connect
        asking = Exchange(b"")
        await self._app(request_of(scope, "GET", {OPENED: True}), asking.receive, asking.send)
        if asking.status != 101:
            await reject(scope, send, asking)
            return
        await send({"type": "websocket.accept", "headers": asking.headers})
        local = Local(self._memory.local)
        turn = request_of(scope, "POST", {LOCAL: local})
        session = _Session(self._app, turn, receive, send, self._waiting)
        with self._life.socket():
            try:
                await session.run(SECONDS)
            finally:
                local.close()


class Waiting:
    """Counts the bytes of all waiting messages of all connections."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0

    def add(self, size: int) -> bool:
        """Count a message of `size` bytes; return False if the limit is exceeded."""
        if self._bytes + size > self._most:
            return False
        self._bytes += size
        return True

    def remove(self, size: int) -> None:
        """Stop counting a message of `size` bytes."""
        self._bytes -= size


class _Session:
    """One accepted connection.

    Args:
        app: the application that answers requests.
        scope: the ASGI scope of the messages' requests.
        receive: the ASGI `receive` of the socket.
        send: the ASGI `send` of the socket.
        waiting: the counter of waiting messages.
    """

    def __init__(
        self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, waiting: Waiting
    ) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._send = send
        self._waiting = waiting
        self._messages: deque[bytes] = deque()
        self._changed = asyncio.Event()  # set when a message has arrived or the connection ends
        self._exchange: Exchange | None = None  # the request that is being answered
        self._task: asyncio.Task[None] | None = None
        self._code: int | None = None  # the close code, once the connection must end
        self._closed = False  # whether the server has closed the connection

    async def run(self, seconds: float) -> None:
        """Serve messages until either side closes."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        reader = asyncio.ensure_future(self._read())
        try:
            while self._code is None:
                if loop.time() >= end:
                    await self._say_and_close(_too_old(seconds), 1000)
                elif self._messages:
                    await self._turn(self._take())
                else:
                    await self._wait(end - loop.time())
            if self._code == _SERVER_ENDS:
                await self._say_and_close(None, _SERVER_ENDS)
        finally:
            reader.cancel()
            self._end_turn(now=True)
            tasks = [task for task in (reader, self._task) if task]
            await asyncio.gather(*tasks, return_exceptions=True)
            while self._messages:
                self._take()

    async def _wait(self, seconds: float) -> None:
        self._mark_idle(asyncio.get_running_loop().time())
        self._changed.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._mark_idle(None)

    def _mark_idle(self, since: float | None) -> None:
        """Report since when the connection is idle.

        Under a connection limit, idle ones close first.
        """
        self._scope["state"]["idle_since"] = since

    def _take(self) -> bytes:
        message = self._messages.popleft()
        self._waiting.remove(len(message))
        return message

    # ---- Receiving messages ----

    async def _read(self) -> None:
        while self._code is None:
            message = await self._receive()
            if message["type"] == "websocket.receive":
                text = message.get("text")
                body = text.encode() if text is not None else message["bytes"]
                await self._put(body)
            else:
                self._end(message.get("code", 1005))

    async def _put(self, body: bytes) -> None:
        if len(self._messages) < MAX_WAITING and self._waiting.add(len(body)):
            self._messages.append(body)
            self._changed.set()
        else:
            await self._say_and_close(_too_many(), 1008)

    def _end(self, code: int) -> None:
        self._code = code
        self._changed.set()
        self._end_turn(now=code == _SERVER_ENDS)

    def _end_turn(self, *, now: bool) -> None:
        """Abort the current response: by a cancellation with an event, or silently."""
        if self._task and now:
            self._task.cancel()
        if self._exchange:
            self._exchange.gone.set()

    # ---- Sending responses ----

    async def _turn(self, body: bytes) -> None:
        exchange = Exchange(body, self._send_text)
        local: Local = self._scope[LOCAL]
        local.begin(None)  # valid until the id of the continued response is known
        scope = dict(self._scope)  # a copy, because routers write into the scope
        self._exchange = exchange
        self._task = asyncio.ensure_future(self._app(scope, exchange.receive, exchange.send))
        await asyncio.wait({self._task})
        task, self._task, self._exchange = self._task, None, None
        if task.cancelled():
            local.failed()
            await self._say(_envelope_of(shutting_down()))
        elif exchange.status != 200:
            local.failed()
            await self._say(exchange.envelope())
        if not task.cancelled() and (error := task.exception()):
            _log.error("A message of a WebSocket was not served", exc_info=error)

    async def _send_text(self, data: bytes) -> None:
        if self._closed:
            raise BrokenPipeError("the connection was closed")
        await self._send({"type": "websocket.send", "text": data.decode()})

    async def _say(self, event: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the client has disconnected, so nothing can be sent
            await self._send_text(json.dumps(event, ensure_ascii=False).encode(errors="replace"))

    async def _say_and_close(self, event: dict[str, Any] | None, code: int) -> None:
        if event:
            await self._say(event)
        self._closed = True
        with contextlib.suppress(OSError):
            await self._send({"type": "websocket.close", "code": code})
        self._end(self._code or code)


def _envelope_of(error: ApiError) -> dict[str, Any]:
    kind = "server_error" if error.status_code >= 500 else "invalid_request_error"
    error_fields = {"type": kind, "code": error.code, "message": error.detail, "param": error.param}
    return {"type": "error", "status": error.status_code, "error": error_fields}


def _too_old(seconds: float) -> dict[str, Any]:
    return _envelope_of(
        ApiError(
            400,
            f"This connection has reached its limit of {seconds / 60:g} minutes; open another one",
            code="websocket_connection_limit_reached",
        )
    )


def _too_many() -> dict[str, Any]:
    return _envelope_of(
        ApiError(
            429,
            f"More than {MAX_WAITING} messages, or too many bytes of them, wait for the response "
            "running; send the next when it has ended",
            code="too_many_messages",
        )
    )
