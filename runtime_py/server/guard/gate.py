"""Checks the key, the page and the size of each request before the routes; ASGI middleware."""

from __future__ import annotations

import math
from contextlib import ExitStack

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..life import PROBES, Life
from ..observing.record import current
from ..wire.deadlines import set_deadline
from ..wire.errors import RETRY_AFTER_SECONDS, ApiError, response, shutting_down
from .browser_guard import BrowserGuard, check_content, wants_page
from .keys import Key, KeyRing
from .permitted import set_key

# number of bodies of the largest size that all running requests may have together
BODIES_AT_ONCE = 8
_TO_THE_END = PROBES | {"/metrics"}  # paths that are answered even while the server drains


class Gate:
    """Refuses a request without a key, from an unknown page, or with too large a body.

    Args:
        app: the next ASGI application.
        keys: the accepted keys, which a client sends as `Authorization: Bearer` or `x-api-key`;
            empty: no key is needed.
        guard: the check of Host and Origin for a server without keys.
        life: the server's state.
        max_body: maximum bytes of a request's body; all bodies together have BODIES_AT_ONCE times
            that.
        request_timeout: seconds that a request may take; None: no limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: KeyRing,
        guard: BrowserGuard,
        life: Life,
        max_body: int,
        request_timeout: float | None = None,
    ) -> None:
        self._app = app
        self._keys = keys
        self._guard = guard
        self._life = life
        self._max_body = max_body
        self._request_timeout = request_timeout
        self._body_bytes = 0  # bytes of the bodies of all running requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as stack:
            try:
                key = self._admitted(scope, Headers(scope=scope), stack)
            except ApiError as e:
                await response(e, scope["path"])(scope, receive, send)
                return
            await self._pass_on(scope, receive, send, key)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, key: Key | None) -> None:
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            received += size
            self._body_bytes += size
            self._check_size(received)
            return message

        async def sending(message: Message) -> None:
            if key and message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(dict(key.quota.headers()))
            await send(message)

        try:
            await self._app(scope, counted, sending)
        finally:
            self._body_bytes -= received
            if key:
                key.quota.spend(current().tokens)

    def _admitted(self, scope: Scope, headers: Headers, stack: ExitStack) -> Key | None:
        """Admit a request, return its key; closing `stack` frees its place in the key's quota."""
        path, method = scope["path"], scope["method"]
        if self._life.draining and path not in _TO_THE_END:
            raise _draining(self._life)
        key = None
        if not self._keys:
            self._guard.check(headers, scope["scheme"])
        elif not is_open(scope, headers):
            key = self._key_of(headers)
            current().key = key.name
            set_key(key)
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._max_body:
            raise self._too_large(int(length[:20]))
        check_content(method, path, headers)
        set_deadline(current(), headers, self._request_timeout)
        if key and method == "POST":
            stack.enter_context(key.quota.request())
        return key

    def _key_of(self, headers: Headers) -> Key:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if key := self._keys.find(given.encode("latin-1")):
            return key
        raise ApiError(
            401,
            "The API key is missing or wrong; send it as: Authorization: Bearer KEY",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _check_size(self, received: int) -> None:
        if received > self._max_body:
            raise self._too_large(received)
        if self._body_bytes > BODIES_AT_ONCE * self._max_body:
            raise ApiError(
                429,
                "Too many large requests at once; try again in a moment",
                code="queue_full",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS), "Connection": "close"},
            )

    def _too_large(self, size: int) -> ApiError:
        return ApiError(
            413,
            f"The body has {size} bytes or more; at most {self._max_body} are accepted",
            code="request_too_large",
            headers={"Connection": "close"},
        )


def is_open(scope: Scope, headers: Headers) -> bool:
    """Tell whether a path needs no key: probes, and the page, which has no data of the models."""
    return scope["path"] in PROBES or wants_page(scope, headers)


def _draining(life: Life) -> ApiError:
    error = shutting_down()
    seconds = max(1, math.ceil(life.drain_seconds_left))
    error.headers = {"Retry-After": str(seconds), "Connection": "close"}
    return error
