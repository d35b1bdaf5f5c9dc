"""A headless Chromium that opens one page and posts one answer; WebGPU runs on SwiftShader."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
)
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html"}
_PAGE = (
    b'<!doctype html><meta charset="utf-8"><script type="module" src="/tests/page.mjs"></script>'
)


def answer_of(
    folders: Mapping[str, Path], given: Any, seconds: float, page: bytes = _PAGE
) -> dict[str, Any]:
    """Open the page in a browser of its own, and wait for what it posts.

    Args:
        folders: what "/NAME/..." is served from, by name.
        given: /given.json.
        seconds: to wait at most.
        page: what "/" is.
    """
    assert CHROMIUM
    results: Queue[dict[str, Any]] = Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(folders, given, results, page))
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="wherry-chromium-") as profile:
        log = Path(profile, "log")
        with log.open("wb") as said:
            address = f"http://127.0.0.1:{server.server_port}/"
            browser = subprocess.Popen(
                [CHROMIUM, *FLAGS, f"--user-data-dir={profile}/profile", address],
                stdout=said,
                stderr=said,
            )
            try:
                return results.get(timeout=seconds)
            except Empty:
                words = log.read_text(errors="replace")[-3000:]
                raise AssertionError(f"no answer of the page for {seconds} s:\n{words}") from None
            finally:
                browser.terminate()
                browser.wait(20)
                server.shutdown()
                server.server_close()


def _handler(
    folders: Mapping[str, Path], given: Any, results: Queue[dict[str, Any]], page: bytes
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, name, *rest = self.path.split("/")
            if self.path == "/":
                return self._send(page, "text/html")
            if name == "given.json":
                return self._send(json.dumps(given).encode(), "application/json")
            path = folders[name].joinpath(*rest) if name in folders else None
            if path is None or not path.is_file():
                return self.send_error(404)
            kind = _TYPES.get(path.suffix, "application/octet-stream")
            self._send(path.read_bytes(), kind)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._send(b"{}", "application/json")
            results.put(json.loads(body))

        def _send(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """A test that passes says nothing."""

    return Handler
