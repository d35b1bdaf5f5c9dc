"""Serves a WebSocket's message as an HTTP request, with the same application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Message, Scope, Send

# headers that belong to the handshake alone, not to the requests on its socket
_OF_HANDSHAKE = frozenset(
    b"connection upgrade content-type content-length transfer-encoding x-request-id".split()
)
# Headers of an error response that the error event repeats.
_HEADERS = {b"retry-after": "Retry-After", b"x-request-id": "X-Request-Id"}


class Exchange:
    """The HTTP request that a WebSocket's message stands for, and its response.

    Args:
        body: the request's body.
        tell: callback with each event of a stream; None: the response is not streamed.

    Attributes:
        gone: event that is set when the client has disconnected.
        status: status of the response; 0 before it begins.
    """

    def __init__(self, body: bytes, tell: Callable[[bytes], Awaitable[None]] | None = None) -> None:
        self._body: bytes | None = body
        self._tell = tell
        self._answer = b""
        self.gone = asyncio.Event()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []

    async def receive(self) -> Message:
        """Return the body, and at the next call, later, the client's disconnect.

        The ASGI `receive`.
        """
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Pass on the events of a stream; collect other bodies; the ASGI `send`."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
            return
        body: bytes = message.get("body", b"")
        if self._tell is None or self.status != 200:
            self._answer += body
            return
        for line in body.splitlines():
            await self._tell(line)

    @property
    def answer(self) -> bytes:
        """Return the body of a response that is no stream."""
        return self._answer

    def envelope(self) -> dict[str, Any]:
        """Return the event that reports why there is no response."""
        try:
            error = json.loads(self._answer)["error"]
        except (ValueError, LookupError, TypeError):
            error = {"type": "server_error", "message": "The request was not answered"}
        headers = {_HEADERS[n]: v.decode() for n, v in self.headers if n in _HEADERS}
        code = error.get("code") or error["type"]
        return {
            "type": "error",
            "status": self.status or 500,
            "error": {**error, "code": code, "headers": headers},
        }


def request_of(scope: Scope, method: str, extra: dict[str, Any]) -> Scope:
    """Return the ASGI scope of a message's request, with the headers of the handshake."""
    headers = [(n, v) for n, v in scope["headers"] if not n.startswith(b"sec-websocket-")]
    if method == "POST":
        headers = [(n, v) for n, v in headers if n not in _OF_HANDSHAKE]
        headers.append((b"content-type", b"application/json"))
    request_scope = {
        name: v for name, v in scope.items() if name not in ("subprotocols", "extensions")
    }
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    request_scope |= {
        "type": "http",
        "scheme": scheme,
        "method": method,
        "headers": headers,
        **extra,
    }
    request_scope.setdefault("state", {})
    return request_scope


async def reject(scope: Scope, send: Send, exchange: Exchange) -> None:
    """Reject a handshake with the response of its request."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": exchange.status, "headers": exchange.headers})
    await send({"type": f"{kind}.body", "body": exchange.answer, "more_body": False})
