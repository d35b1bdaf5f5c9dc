"""A server in a process of its own, and what a second client sees of it."""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

SCRIPT = """
import sys
from tests.runtime.conftest import make_model
from wherry.runtime import MLCEngine, serve
model = make_model({text!r}, context={context}, pages=2**20)
serve(MLCEngine.of(model), port=0, on_ready=lambda url: print(url, flush=True), {options})
"""
PACKAGES = [p for p in [os.environ.get("PYTHONPATH")] if p]  # of who runs the tests: test_uvloop.py


class Served:
    """A process that serves; `log` is what it wrote to stderr so far."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self.process = process
        self.url = url
        address = urlsplit(url)
        self.host, self.port = address.hostname, address.port
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def peak(self) -> int:
        """The most memory it had, bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024

    def post(self, path: str, body: bytes, timeout: float = 120, **headers: str):
        """Status and body of a POST."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def health(self) -> float:
        """Seconds that a new client waits for /health."""
        start = time.monotonic()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", "/health")
            assert connection.getresponse().status == 200
        return time.monotonic() - start

    @property
    def cpu_seconds(self) -> float:
        """That it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def longest_wait(self, work) -> float:
        """The longest of `waits`."""
        return max(self.waits(work))

    def waits(self, work) -> list[float]:
        """Of a second client that asks for /health again and again while `work()` runs."""
        waits, ended = [self.health()], threading.Event()

        def ask():
            while not ended.is_set():
                waits.append(self.health())
                time.sleep(0.005)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            work()
        finally:
            ended.set()
            thread.join()
        return waits


@contextlib.contextmanager
def served(
    folder: Path,
    *,
    text="Hello!",
    context=4096,
    options="",
    files: int | None = None,
    script: str | None = None,
):
    """Serve the small model, or what `script` does; `files` limits the process's descriptors."""
    script = script or SCRIPT.format(text=text, context=context, options=options)
    command = [sys.executable, "-c", script]
    if files:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", ".", *PACKAGES])},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield Served(process, process.stdout.readline().strip(), log)
        finally:
            process.kill()
