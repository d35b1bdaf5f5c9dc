"""Serves a site on this machine, with the headers that a page needs for threads in wasm.

Files are sent as they are: with ranges, so that a cut download goes on, and nothing is kept by the
browser beyond what the page itself keeps.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wherry.errors import UsageError

from . import site

# What systems say of these differs, or nothing.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".bin": "application/octet-stream",
    ".jinja": "text/plain; charset=utf-8",
}
_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",  # with the next one: shared memory
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class _Files(StaticFiles):
    """A folder's files, with the types of `_TYPES`."""

    def file_response(self, full_path: Any, *args: Any, **kwargs: Any) -> Response:
        """A file."""
        response = super().file_response(full_path, *args, **kwargs)
        if known := _TYPES.get(Path(full_path).suffix):
            response.headers["content-type"] = known
        return response


class _Headers:
    """Puts `_HEADERS` on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers)


def app_of(place: Path) -> ASGIApp:
    """What serves a site, a compiled folder, or a folder of compiled ones.

    Raises:
        ArtifactError: it is none of these.
        UsageError: a folder was compiled for another target.
        ToolchainError: the page was not made.
    """
    if (place / "index.html").is_file():
        return _Headers(Starlette(routes=[_mount("/", place)]))
    folders = site.folders_in(place)
    page = site.page_folder()
    index = _json(site.index_of(folders))
    mounts: list[BaseRoute] = [_mount(f"/{a.rstrip('/')}", f) for a, f in folders.items()]
    return _Headers(Starlette(routes=[Route(f"/{site.INDEX}", index), *mounts, _mount("/", page)]))


def _mount(path: str, folder: Path) -> Mount:
    return Mount(path, _Files(directory=folder, html=True))


def _json(value: Mapping[str, Any]) -> Callable[[Request], Response]:
    text = json.dumps(value, indent=2)
    return lambda request: Response(text, media_type="application/json")


def serve(place: Path, *, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal comes; raises as `app_of`.

    Args:
        place: a site, a compiled folder, or a folder of compiled ones.
        host: of this machine.
        port: 0 takes a free one.
        on_ready: called with the address.

    Raises:
        UsageError: the address is taken.
    """
    app = app_of(place)
    bound = _bound(host, port)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
    shown = f"[{host}]" if ":" in host else host
    on_ready(f"http://{shown}:{bound.getsockname()[1]}/")
    uvicorn.Server(config).run([bound])


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as e:
        raise UsageError(
            f"Cannot listen on {host}:{port}: {e.strerror}. Choose another --port."
        ) from e
