"""Takes requests from Ray's proxies and routes each to the replica that has its prefix cached."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wherry.errors import WherryError

from ..errors import BusyError
from ..server.pipeline import CLIENT_GONE, LONG_BODY
from ..server.wire import errors
from ..server.wire.errors import ApiError
from ..server.wire.json_body import parse_json
from .http_call import REPLICA_HEADER, Head, HttpRequest
from .kept import given, keepers, key, named
from .last_word import last_word
from .prompt_prefix import block_keys

_log = logging.getLogger(__name__)
_TRIES = 3  # number of replicas that may die before a response has its first byte
_BODIES_AT_ONCE = 8  # the ingress holds at most this number of bodies of the largest size


class Ingress:
    """Handles all paths: it reads the beginning of a body, and forwards the whole request.

    If a replica dies before the first byte of a response, the ingress asks another one. If it dies
    later, the stream ends with an error in its protocol's shape.

    Args:
        engines: the handle of the deployment of `Replica`.
        max_body: maximum bytes of a body; one more is read, so that the replica's server refuses
            the body.
    """

    def __init__(self, engines: DeploymentHandle, max_body: int) -> None:
        self._engines = engines.options(stream=True)
        self._max_body = max_body
        self._body_bytes = 0  # bytes of the bodies of requests whose responses have not begun

    async def __call__(self, http: Request) -> Response:
        """Return the response, which is an ASGI application that sends itself."""
        path = _path(http.scope)
        body = bytearray()
        try:
            await self._read(http, body)
            request = await _request(http.scope, path, bytes(body))
            head, pieces = await self._begin(request)
        except ClientDisconnect:
            return Response(status_code=CLIENT_GONE)
        except ApiError as e:
            return errors.response(e, path)
        finally:
            self._body_bytes -= len(body)
        if keeps := given(path, head.body):
            keepers().note(_header(head, REPLICA_HEADER), keeps)
        return _Forwarded(path, head, pieces)

    async def _read(self, http: Request, body: bytearray) -> None:
        async for piece in http.stream():
            body += piece
            self._body_bytes += len(piece)
            if len(body) > self._max_body:
                break
            if self._body_bytes > _BODIES_AT_ONCE * self._max_body:
                raise errors.api_error(BusyError("Too many large requests at once"))

    async def _begin(self, request: HttpRequest) -> tuple[Head, Any]:
        """Await the first piece of a response; return it and an iterator of the others.

        Raises:
            ApiError: no replica answered.
        """
        for _ in range(_TRIES):
            pieces = self._engines.serve_http.remote(request)
            try:
                return cast(Head, await anext(pieces)), pieces
            except RayActorError as e:
                _log.warning("A replica died before it answered; another one is tried: %s", e)
            except BackPressureError as e:
                raise errors.api_error(BusyError("The queue is full")) from e
            except DeploymentUnavailableError as e:
                raise ApiError(503, "No replica can be started", code="unavailable") from e
            except RayTaskError as e:
                _log.error("A replica failed: %s", e)
                raise errors.api_error(e) from e
            except asyncio.CancelledError:
                pieces.cancel()
                raise
        raise ApiError(503, "Replicas die under this request", code="replica_lost")


def _path(scope: Scope) -> str:
    """Return the path below the application's prefix, which replicas do not know."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) or "/" if root else path


async def _request(scope: Scope, path: str, body: bytes) -> HttpRequest:
    long = len(body) > LONG_BODY
    prefix, kept = await asyncio.to_thread(_wants, path, body) if long else _wants(path, body)
    return HttpRequest(
        method=scope["method"],
        path=path,
        query=scope["query_string"],
        headers=tuple((bytes(name), bytes(value)) for name, value in scope["headers"]),
        body=body,
        scheme=scope.get("scheme", "http"),
        client=tuple(scope["client"]) if scope.get("client") else None,
        prefix=prefix,
        kept=kept,
    )


def _wants(path: str, body: bytes) -> tuple[bytes, int | None]:
    """Return what routing needs: hash keys of the prompt's blocks and of a named stored item."""
    fields = None
    if body[:64].lstrip().startswith(b"{"):
        # The replica's server reports an error in the body, so the ingress ignores it.
        with contextlib.suppress(WherryError):
            fields = parse_json(body)
    name = named(path, fields)
    return block_keys(fields), None if name is None else key(name)


class _Forwarded(Response):
    """A response that sends the pieces of a replica's response as they arrive."""

    def __init__(self, path: str, head: Head, pieces: AsyncIterator[bytes]) -> None:
        self._path, self._head, self._pieces = path, head, pieces
        self.status_code = head.status
        # Ray's proxy adds the id of the request to the response itself.
        self.raw_headers = [h for h in head.headers if h[0].lower() != b"x-request-id"]
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the replica's response to one client."""
        start = {"status": self.status_code, "headers": self.raw_headers}
        try:
            await send({"type": "http.response.start", **start})
            await _send(send, self._head.body)
            async for piece in self._pieces:
                await _send(send, piece)
            last = b""
        except (RayActorError, RayTaskError) as e:
            _log.error("A replica was lost in the middle of an answer: %s", e)
            last = self._last_word()
        finally:
            # the cancellation has no effect on a response that has ended
            cast(Any, self._pieces).cancel()
        await _send(send, last, more=False)

    def _last_word(self) -> bytes:
        """Return an error in the shape of the stream's protocol.

        Raises:
            RuntimeError: the response is no stream of events or lines, so an error must keep it
                from looking complete.
        """
        if (last := last_word(_header(self._head, b"content-type"), self._path)) is None:
            raise RuntimeError("A replica was lost in the middle of an answer")
        return last


def _header(head: Head, requested: bytes) -> str:
    values = (value for name, value in head.headers if name.lower() == requested)
    return next(values, b"").decode("latin-1")


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
