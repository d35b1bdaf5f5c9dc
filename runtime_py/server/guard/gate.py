"""What stands before the server's routes: who may ask, and how much. Plain ASGI."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wire.errors import RETRY_AFTER_SECONDS, ApiError, response
from .browser_guard import BrowserGuard, content_refusal

OPEN_PATHS = frozenset({"/health"})
BODIES_AT_ONCE = 8  # of the largest size: memory for all requests that are under way


class Gate:
    """Refuses a request without the key, from a strange page, or with too large a body.

    Args:
        app: what is behind.
        api_key: None: no key is asked for. `Authorization: Bearer` and `x-api-key` both carry it.
        guard: asked where there is no key.
        max_body: bytes of one request; all together may have BODIES_AT_ONCE times that.
    """

    def __init__(
        self, app: ASGIApp, *, api_key: str | None, guard: BrowserGuard, max_body: int
    ) -> None:
        self._app = app
        self._key = api_key.encode() if api_key else None
        self._guard = guard
        self._max_body = max_body
        self._held = 0  # bytes of the bodies of all requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if refusal := self._refusal(scope, Headers(scope=scope)):
            await response(refusal, scope["path"])(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            received += size
            self._held += size
            self._check_size(received)
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._held -= received

    def _refusal(self, scope: Scope, headers: Headers) -> ApiError | None:
        if self._key is None:
            if refusal := self._guard.refusal(headers, scope["scheme"]):
                return refusal
        elif scope["path"] not in OPEN_PATHS and not self._has_key(headers):
            return ApiError(
                401,
                "The API key is missing or wrong; send it as: Authorization: Bearer KEY",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._max_body:
            return self._too_large(int(length[:20]))
        return content_refusal(scope["method"], headers)

    def _check_size(self, received: int) -> None:
        if received > self._max_body:
            raise self._too_large(received)
        if self._held > BODIES_AT_ONCE * self._max_body:
            raise ApiError(
                429,
                "Too many large requests at once; try again in a moment",
                code="queue_full",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS), "Connection": "close"},
            )

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
