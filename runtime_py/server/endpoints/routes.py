"""The routes of the server: each has one path, one method and one handler."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

Routes = dict[tuple[str, str], Callable[..., Any]]  # maps (method, path) to a handler


class Group(Protocol):
    """The interface of a group of paths that belong together."""

    def routes(self) -> Routes:
        """Return the handler of each method and path."""


class OneMethod(Route):
    """A route that answers one method; Starlette's answers HEAD where it answers GET.

    Args:
        method: the HTTP method.
        path: the path, with parameters in braces.
        handler: returns the response. It takes the request and parameters of the path, by their
            names; one that is no coroutine runs on a thread.
    """

    def __init__(self, method: str, path: str, handler: Callable[..., Any]) -> None:
        super().__init__(path, _Handling(handler), methods=[method])
        self.endpoint, self.methods = handler, {method}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route fits, and what the request's scope gets: the route, too."""
        match, known = super().matches(scope)
        return match, {**known, "route": self}


class _Handling:
    """The ASGI application of one route."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._handler = handler
        self._names = tuple(inspect.signature(handler).parameters)
        self._is_coroutine = inspect.iscoroutinefunction(handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        given = {name: request.path_params.get(name, request) for name in self._names}
        if self._is_coroutine:
            response = await self._handler(**given)
        else:
            response = await run_in_threadpool(self._handler, **given)
        await response(scope, receive, send)
