"""Every failure of the server in OpenAI's shape: {"error": {message, type, param, code}}."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from wherry.errors import UsageError, WherryError

from ..request.errors import BusyError, RequestError

_log = logging.getLogger(__name__)
RETRY_AFTER_SECONDS = 1


class ApiError(HTTPException):
    """A failure with a status of its own and OpenAI's fields."""

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


def api_error(error: BaseException) -> ApiError:
    """What a client is told of an error; the details of our own bugs stay in the log."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "_")
        return ApiError(error.status_code, error.detail, code=code, headers=error.headers)
    if isinstance(error, RequestError):
        return ApiError(400, str(error), param=error.param, code=error.code)
    if isinstance(error, UsageError):
        return ApiError(400, str(error))
    if isinstance(error, BusyError):
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        return ApiError(429, str(error), code="queue_full", headers=headers)
    if isinstance(error, WherryError):
        return ApiError(500, str(error), code="engine_error")
    return ApiError(500, "The server has failed; its log says why", code="internal_error")


def shutting_down() -> ApiError:
    """For requests that the end of the server cuts off."""
    return ApiError(503, "The server is shutting down", code="shutting_down")


def body(error: ApiError) -> dict[str, Any]:
    """The JSON of an error."""
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


def response(error: BaseException) -> JSONResponse:
    """The whole answer to a request that failed."""
    known = api_error(error)
    return JSONResponse(body(known), known.status_code, headers=dict(known.headers or {}))


def install(app: FastAPI) -> None:
    """Answer all failures of `app`, those of its routes included, in this shape."""

    async def handle(request: Request, error: Exception) -> JSONResponse:
        if isinstance(error, HTTPException) and not isinstance(error, ApiError):
            error = _about_route(request, error)
        elif isinstance(error, WherryError) and api_error(error).status_code >= 500:
            _log.error("%s %s: %s", request.method, request.url.path, error)
        return response(error)

    for kind in (HTTPException, WherryError, Exception):
        app.add_exception_handler(kind, handle)


def _about_route(request: Request, error: HTTPException) -> ApiError:
    where = f"{request.method} {request.url.path}"
    allowed = Headers(error.headers).get("allow")
    messages = {
        404: f"There is no {where}; GET / lists what there is",
        405: f"{where}: the method is not allowed; use {allowed}",
    }
    known = api_error(error)
    known.detail = messages.get(error.status_code, error.detail)
    return known
