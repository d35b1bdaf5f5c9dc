"""Errors of the server, in the shape of the path's protocol.

The default is OpenAI's: {"error": {message, type, param, code}}.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from wherry.errors import UsageError, WherryError

from ...errors import BusyError, ContextOverflow, RequestError
from ..observing.record import current

_log = logging.getLogger(__name__)
RETRY_AFTER_SECONDS = 1


class ApiError(HTTPException):
    """An error with an HTTP status and OpenAI's fields."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.param = param
        self.code = code
        # the numbers of a prompt that is too long, which each protocol reports in its own words
        self.overflow: ContextOverflow | None = None


def api_error(error: BaseException) -> ApiError:
    """Return the error that the client gets for an exception; details of bugs stay in the log."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "_")
        return ApiError(error.status_code, error.detail, code=code, headers=error.headers)
    if isinstance(error, RequestError):
        known = ApiError(400, str(error), param=error.param, code=error.code)
        known.overflow = error if isinstance(error, ContextOverflow) else None
        return known
    if isinstance(error, UsageError):
        return ApiError(400, str(error))
    if isinstance(error, BusyError):
        headers = {"Retry-After": str(error.retry_after or RETRY_AFTER_SECONDS)}
        return ApiError(429, str(error), code="queue_full", headers=headers)
    if isinstance(error, WherryError):
        return ApiError(500, str(error), code="engine_error")
    return ApiError(
        500,
        f"The server has failed; its log says why, at request {current().id}",
        code="internal_error",
    )


def shutting_down() -> ApiError:
    """Return the error of requests that a shutdown aborts."""
    return ApiError(503, "The server is shutting down", code="shutting_down")


ErrorShape = Callable[[ApiError], dict[str, Any]]
# functions that write errors, by the URL path prefix of their protocol
_shapes: dict[str, ErrorShape] = {}


def add_shape(prefix: str, shape: ErrorShape) -> None:
    """Set the shape of errors for paths that begin with `prefix`."""
    _shapes[prefix] = shape


def shape_of(path: str) -> ErrorShape:
    """Return the function that writes errors for a path."""
    return next((shape for prefix, shape in _shapes.items() if path.startswith(prefix)), body)


def body(error: ApiError) -> dict[str, Any]:
    """Return the JSON of an error in OpenAI's shape."""
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = "server_error" if error.status_code >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": error.detail,
            "type": kinds.get(error.status_code, kind),
            "param": error.param,
            "code": error.code,
        }
    }


def response(error: BaseException, path: str = "") -> JSONResponse:
    """Return the response to a request that failed."""
    known = api_error(error)
    current().error = known.code or f"http_{known.status_code}"
    content = shape_of(path)(known)
    return JSONResponse(content, known.status_code, headers=dict(known.headers or {}))


def install(app: FastAPI) -> None:
    """Let `app` and its routes write all errors in the shapes of their protocols."""

    async def handle(request: Request, error: Exception) -> JSONResponse:
        if isinstance(error, HTTPException) and not isinstance(error, ApiError):
            error = _about_route(request, error)
        elif isinstance(error, WherryError) and api_error(error).status_code >= 500:
            _log.error("%s %s %s: %s", current().id, request.method, request.url.path, error)
        return response(error, request.url.path)

    for kind in (HTTPException, WherryError, Exception):
        app.add_exception_handler(kind, handle)


def _about_route(request: Request, error: HTTPException) -> ApiError:
    where = f"{request.method} {request.url.path}"
    allowed = ", ".join(_methods(request)) or Headers(error.headers).get("allow", "")
    messages = {
        404: f"There is no {where}; GET / lists what there is",
        405: f"{where}: the method is not allowed; use {allowed}",
    }
    known = api_error(error)
    known.detail = messages.get(error.status_code, error.detail)
    if error.status_code == 405:
        known.headers = {"Allow": allowed}
    return known


def _methods(request: Request) -> list[str]:
    """Return all methods of a path, exact paths first; Starlette returns only one route's."""
    path, routes = request.scope["path"], [r for r in request.app.routes if isinstance(r, Route)]
    fitting = [r.path for r in routes if r.path_regex.match(path)]
    best = path if path in fitting else next(iter(fitting), "")
    return sorted({method for r in routes if r.path == best for method in r.methods or ()})
