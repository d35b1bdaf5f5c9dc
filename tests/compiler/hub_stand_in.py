"""The part of the hub's HTTP interface that a download needs, on the loopback interface."""

import hashlib
import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """Files of one repository, and how it misbehaves."""

    repo: str
    files: dict[str, bytes]
    large: set[str] = field(default_factory=set)  # in large storage: redirected, with a SHA-256
    gated: bool = False
    private: bool = False
    failing: bool = False  # answers 503
    ranges: bool = True
    breaks: dict[str, list[int]] = field(default_factory=dict)  # bytes sent before it hangs up
    then_fails: bool = False  # answers 503 after it has hung up
    hangs: bool = False  # in place of hanging up it sends nothing more
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""
    sha: object = COMMIT  # the commit that it names
    over: threading.Event = field(default_factory=threading.Event)

    def start(self):
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_HEAD(self):
                self.answer(body=False)

            def do_GET(self):
                self.answer(body=True)

            def answer(self, body):
                hub.answer(self, body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        serve = partial(self.server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        return self

    def stop(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def listing(self):
        siblings = []
        for name, data in self.files.items():
            git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry = {"rfilename": name, "size": len(data), "blobId": git}
            if name in self.large:
                digest = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        return {"id": self.repo, "modelId": self.repo, "sha": self.sha, "siblings": siblings}

    def answer(self, request, body):
        path = urlsplit(request.path).path
        self.requests.append((request.command, path, request.headers.get("Range")))
        if self.failing:
            return self.reply(request, 503, b"", {})
        api, resolve = f"/api/models/{self.repo}/revision/", f"/{self.repo}/resolve/{COMMIT}/"
        if self.private or not path.startswith((api, resolve, "/cdn/")):
            return self.reply(request, 404, b"", {"X-Error-Code": "RepoNotFound"})
        if path.startswith(api):
            if path.removeprefix(api) not in ("main", "v1", COMMIT):
                return self.reply(request, 404, b"", {"X-Error-Code": "RevisionNotFound"})
            return self.reply(request, 200, json.dumps(self.listing()).encode(), {})
        if self.gated:
            return self.reply(request, 403, b"", {"X-Error-Code": "GatedRepo"})
        name = path.removeprefix(resolve).removeprefix("/cdn/")
        if name in self.large and not path.startswith("/cdn/"):
            return self.reply(request, 302, b"", {"Location": f"{self.url}/cdn/{name}"})
        return self.send_file(request, name, body)

    def send_file(self, request, name, body):
        data, status, headers = self.files[name], 200, {}
        given = request.headers.get("Range")
        if given and self.ranges:
            start = int(given.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            data, status = data[start:], 206
        limit = self.breaks.get(name) or [len(data)]
        count = limit.pop(0) if name in self.breaks else len(data)
        self.reply(request, status, data, headers, count if body else 0)
        if body and count < len(data):
            if self.hangs:
                self.over.wait()
            request.close_connection = True
            self.failing = self.then_fails

    def reply(self, request, status, data, headers, count=None):
        request.send_response(status)
        request.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        with suppress(ConnectionError):  # the client has seen enough
            request.wfile.write(data[:count])
