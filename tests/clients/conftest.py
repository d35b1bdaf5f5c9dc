"""A server of the demo model, and programs written for other servers that talk to it.

Each client lives in a virtual environment (or a node_modules) of its own under build/clients, which
is made once and kept. The programs in `programs/` print one JSON object: what they have seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
HOMES = HERE.parents[1] / "build" / "clients"
KEY = "a-key-of-the-tests"
NODE = "node@22"  # what the npm packages of 2026 ask for; Debian has an older one
START_SECONDS = 300  # the demo model may have to be compiled first


class Server(NamedTuple):
    """A server in a process of its own; `url` has no path."""

    process: subprocess.Popen
    url: str


@pytest.fixture(scope="session")
def server():
    """`wherry serve demo`."""
    command = [sys.executable, "-m", "wherry", "serve", "demo", "--port", "0", "--api-key", KEY]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": _sources()}
    )
    try:
        yield Server(process, _address(process))
    finally:
        process.terminate()
        process.wait(60)


def _sources() -> str:
    return str(HERE.parents[1] / "src")


def _address(process: subprocess.Popen[str]) -> str:
    """What the server says when it listens; the rest of its log is read so that it never blocks."""
    watchdog = threading.Timer(START_SECONDS, process.kill)
    watchdog.start()
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("Serving "):
            watchdog.cancel()
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return line.split()[-1].removesuffix("/v1")
    raise AssertionError("The server did not start:\n" + "".join(seen))


@pytest.fixture(scope="session")
def python_client(server):
    """Runs a program of `programs/` with the packages that it names."""

    def run(program: str, *requirements: str) -> dict:
        home = _home(program, requirements)
        python = home / "bin" / "python"
        if not (home / ".made").exists():
            _check([sys.executable, "-m", "venv", "--clear", str(home)])
            _check([str(python), "-m", "pip", "install", "--quiet", *requirements])
            (home / ".made").touch()
        return _seen([str(python), str(HERE / "programs" / program)], server.url)

    return run


@pytest.fixture(scope="session")
def npm_client(server):
    """Runs a program of `programs/` with Node.js and the packages that it names."""

    def run(program: str, *packages: str) -> dict:
        home = _home(program, packages)
        if not (home / ".made").exists():
            home.mkdir(parents=True, exist_ok=True)
            options = ["--silent", "--no-fund", "--no-audit", "--prefix", str(home)]
            _check(["npm", "install", *options, NODE, *packages])
            (home / ".made").touch()
        node = home / "node_modules" / ".bin" / "node"
        # Node looks for modules in the program's folder.
        copy = home / program
        copy.write_bytes((HERE / "programs" / program).read_bytes())
        return _seen([str(node), str(copy)], server.url)

    return run


def _home(program: str, packages: tuple[str, ...]) -> Path:
    tag = hashlib.sha256(" ".join((sys.version, *packages)).encode()).hexdigest()[:12]
    return HOMES / f"{Path(program).stem}-{tag}"


def _check(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


def _seen(command: list[str], url: str) -> dict:
    """The last line that the program prints."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
    environment |= {"SERVER_URL": url, "SERVER_KEY": KEY}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])
