"""What stands before the server's routes: the API key and the limit of a body. Plain ASGI."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .server_errors import ApiError, response

OPEN_PATHS = frozenset({"/health"})


class Gate:
    """Refuses a request without the key (401) or with a body that is too large (413).

    Args:
        app: what is behind.
        api_key: None: no key is asked for. `Authorization: Bearer` and `x-api-key` both carry it.
        max_body: bytes.
    """

    def __init__(self, app: ASGIApp, *, api_key: str | None, max_body: int) -> None:
        self._app = app
        self._key = api_key.encode() if api_key else None
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["path"], headers)
        if refusal:
            await response(refusal)(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_body:
                raise self._too_large(received)
            return message

        await self._app(scope, counted, send)

    def _refusal(self, path: str, headers: Headers) -> ApiError | None:
        if self._key and path not in OPEN_PATHS and not self._has_key(headers):
            return ApiError(
                401,
                "The API key is missing or wrong; send it as: Authorization: Bearer KEY",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self._max_body:
            return self._too_large(int(length))
        return None

    def _has_key(self, headers: Headers) -> bool:
        assert self._key
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("latin-1"), self._key)

    def _too_large(self, size: int) -> ApiError:
        return ApiError(
            413,
            f"The body has {size} bytes or more; at most {self._max_body} are accepted",
            code="request_too_large",
            headers={"Connection": "close"},
        )
