"""Serves a site on this machine, with the HTTP headers that WebAssembly threads need.

It supports range requests, so that an interrupted download resumes, and forbids the browser's own
cache, because the page stores files itself. Compressible files are sent gzipped, weights as they
are.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wherry.errors import UsageError

from . import site

# File suffix -> media type, for types that systems disagree on or do not know.
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
_COMPRESSED = _TYPES.keys() - {".bin"}
_LEAST = 1024  # bytes; smaller files are not compressed
_HEADERS = {
    # together with the next header, allows shared memory
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class _Files(StaticFiles):
    """Static files of a folder, with the media types of `_TYPES`."""

    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return the response for a file.

        A range is sent uncompressed, because offsets are the file's.
        """
        kind = Path(full_path).suffix
        headers = Headers(scope=scope)
        response: Response = FileResponse(full_path, status_code, stat_result=stat_result)
        if known := _TYPES.get(kind):
            response.headers["content-type"] = known
        if kind in _COMPRESSED and stat_result.st_size >= _LEAST:
            response.headers["vary"] = "Accept-Encoding"
            if _takes_gzip(headers.get("accept-encoding", "")) and "range" not in headers:
                response = _Gzipped(Path(full_path), stat_result, response)
        if self.is_not_modified(response.headers, headers):
            return NotModifiedResponse(response.headers)
        return response


class _Gzipped(Response):
    """Response with a file compressed by gzip."""

    def __init__(self, path: Path, state: os.stat_result, plain: Response) -> None:
        super().__init__(status_code=plain.status_code, headers=dict(plain.headers))
        self._file = (path, state.st_mtime_ns, state.st_size)
        self.headers["content-encoding"] = "gzip"
        # the compressed bytes need another ETag
        self.headers["etag"] = plain.headers["etag"][:-1] + '-gzip"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.body = await run_in_threadpool(_gzipped, *self._file)
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


@lru_cache(maxsize=64)
def _gzipped(path: Path, _modified: int, _size: int) -> bytes:
    return gzip.compress(path.read_bytes(), 6, mtime=0)


def _takes_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip (RFC 9110, 12.5.3)."""
    for one in accepted.lower().split(","):
        name, *options = (part.strip() for part in one.split(";"))
        if name == "gzip":
            return not any(option.replace(" ", "").rstrip("0.") == "q=" for option in options)
    return False


class _Headers:
    """Middleware that adds `_HEADERS` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers)


def app_of(place: Path) -> ASGIApp:
    """Return the application for a site, a compiled folder, or a folder of compiled folders.

    Raises:
        ArtifactError: the folder is none of these.
        UsageError: a folder was compiled for another target.
        ToolchainError: the page was not built.
    """
    if (place / "index.html").is_file():
        return _Headers(Starlette(routes=[_mount("/", place)]))
    folders = site.folders_in(place)
    index = _json(site.index_of(folders))  # what no page can run is refused before it is missed
    page = site.page_folder()
    mounts: list[BaseRoute] = [_mount(f"/{a.rstrip('/')}", f) for a, f in folders.items()]
    return _Headers(Starlette(routes=[Route(f"/{site.INDEX}", index), *mounts, _mount("/", page)]))


def _mount(path: str, folder: Path) -> Mount:
    return Mount(path, _Files(directory=folder, html=True))


def _json(value: Mapping[str, Any]) -> Callable[[Request], Response]:
    text = json.dumps(value, indent=2)
    return lambda request: Response(text, media_type="application/json")


def serve(place: Path, *, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve a site until a signal; raises as `app_of`.

    Args:
        place: a site, a compiled folder, or a folder of compiled folders.
        host: address of this machine to listen on.
        port: TCP port; 0 selects a free one.
        on_ready: called with the URL.

    Raises:
        UsageError: another program uses the address.
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
