"""Runs wherry-lite in its own process; the program is next to the core."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from ..support.waiting import until
from .app import runtime
from .programs import BUILD

PROGRAM = BUILD / "wherry-lite"
NO_SERVE = "has no `serve`"


def command(name: str, folder: Path, *options: object) -> list[str]:
    """What is typed, with TVM's run time of this Python.

    One thread: where a machine is busy, two wait for each other at every kernel.
    """
    words = [PROGRAM, name, folder, "--runtime", runtime(), "--threads", 1, *options]
    return [str(word) for word in words]


def lite(
    name: str, folder: Path, *options: object, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        command(name, folder, *options),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Server:
    """`wherry-lite serve`, on a free port.

    Args:
        words: the command, without the port.
        folder: for what it says.
        environment: of the process.
    """

    def __init__(
        self, words: Sequence[str], folder: Path, environment: dict[str, str] | None = None
    ) -> None:
        self._log = folder / f"server-{time.monotonic_ns()}.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [*words, "--port", "0"], stderr=log, env={**os.environ, **(environment or {})}
            )
        until(lambda: "Serving" in self.log() or self.process.poll() is not None)
        if NO_SERVE in self.log():
            if os.environ.get("WHERRY_REQUIRE_HTTPLIB"):
                pytest.fail(self.log())
            pytest.skip(self.log())
        assert "Serving" in self.log(), self.log()
        self.url = self.log().split(" at ")[1].split("/v1")[0]

    def log(self) -> str:
        """What it has said."""
        return self._log.read_text()

    def connection(self) -> http.client.HTTPConnection:
        """A new one."""
        return http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=120)

    def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or the text of a stream) and headers of one request."""
        connection = self.connection()
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            plain = answer.headers.get_content_type() == "application/json"
            return answer.status, json.loads(text) if plain else text, dict(answer.headers)
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        """The app's counters."""
        counters: dict[str, Any] = self.ask("GET", "/stats")[1]
        return counters

    def wait_until_idle(self) -> None:
        """All requests have ended, and their pages are free."""

        def idle() -> bool:
            stats = self.stats()
            return stats["requests"] == 0 and stats["pages_free"] == stats["pages_total"]

        until(idle)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


@contextmanager
def cache(folder: Path) -> Iterator[None]:
    """Packed weights go to a folder of the tests."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


def events(text: str) -> list[Any]:
    """The chunks of a stream, which ends as OpenAI's do."""
    lines = [line for line in text.split("\n") if line]
    assert lines[-1] == "data: [DONE]", text[-300:]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
