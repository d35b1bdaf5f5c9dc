"""A server of model folders that misbehaves as it is told, on the loopback interface."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from wherry.artifact.manifest import MANIFEST, digest


def manifest_of(contents: Mapping[str, bytes], **more: Any) -> bytes:
    """A manifest, as far as a download reads it; `more` are other fields, or others in place."""
    files = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in contents.items()
    }
    values = {"schema": 2, "name": "made", "files": files, **more}
    values["digest"] = digest(values)
    return (json.dumps(values, indent=2, sort_keys=True) + "\n").encode()


def folder_of(contents: Mapping[str, bytes], **more: Any) -> dict[str, bytes]:
    """Files with their manifest."""
    return {**contents, MANIFEST: manifest_of(contents, **more)}


@dataclass
class ModelServer:
    """One folder. Lists are used up, an element an answer; then the server behaves."""

    files: dict[str, bytes]
    ranges: bool = True
    cuts: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    hangs: bool = False  # where it would cut it sends nothing more
    bodies: defaultdict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    lengths: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    statuses: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    redirects: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # name, Range
    headers: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0  # bytes of bodies
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ModelServer:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        serve = partial(self._server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Address of the folder, without "/" at its end."""
        return f"http://127.0.0.1:{self._server.server_port}/models/made"

    def received(self) -> list[tuple[str, str | None]]:
        """Requests since the last time."""
        taken, self.requests = self.requests, []
        return taken

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        name = request.path.removeprefix("/models/made/")
        given = request.headers.get("Range")
        self.requests.append((name, given))
        self.headers.append(dict(request.headers.items()))
        if name in self.redirects:
            return self._head(request, 302, 0, {"Location": self.redirects[name]})
        status = self.statuses[name].pop(0) if self.statuses[name] else 200
        if name not in self.files or status != 200:
            return self._head(request, 404 if status == 200 else status, 0, {})
        body = self.bodies[name].pop(0) if self.bodies[name] else self.files[name]
        start = int(given.removeprefix("bytes=").rstrip("-")) if given and self.ranges else 0
        if start >= len(body) > 0:
            return self._head(request, 416, 0, {})
        headers, total = {}, len(body)
        if start:
            status, headers = 206, {"Content-Range": f"bytes {start}-{total - 1}/{total}"}
        body = body[start:]
        length = self.lengths[name].pop(0) if self.lengths[name] else len(body)
        self._head(request, status, length, headers)
        count = self.cuts[name].pop(0) if self.cuts[name] else len(body)
        self.sent += min(count, len(body))
        request.wfile.write(body[:count])
        if count < len(body) or length != len(body):
            request.close_connection = True
            if self.hangs:
                request.wfile.flush()
                self.over.wait()
        return None

    def _head(
        self, request: BaseHTTPRequestHandler, status: int, length: int, headers: Mapping[str, str]
    ) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(length))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
