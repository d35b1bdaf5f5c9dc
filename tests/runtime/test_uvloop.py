"""The server on another event loop than asyncio's: uvicorn takes uvloop where it is installed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from uvicorn.server import ServerState

from wherry.runtime.server.wire.http_protocol import ConnectionLimits, HttpProtocol, ServerConfig

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class StrangeTransport:
    """A transport that is none of asyncio's classes, as those of uvloop."""

    def __init__(self, protocol):
        self.written = b""
        self._protocol = protocol

    def get_protocol(self):
        return self._protocol

    def get_extra_info(self, name):
        return None

    def is_closing(self):
        return False

    def write(self, data):
        self.written += data

    def close(self):
        pass


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def test_a_transport_of_another_loop():
    async def answered():
        config = ServerConfig(hello, ConnectionLimits())
        protocol = HttpProtocol(config, ServerState(), {})
        transport = StrangeTransport(protocol)
        protocol.connection_made(transport)
        protocol.data_received(REQUEST)
        await asyncio.gather(*protocol.tasks)
        protocol.connection_lost(None)
        return transport.written

    answer = asyncio.run(answered())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"hello" in answer


@pytest.mark.nightly
def test_uvloop(tmp_path):
    """The tests of connections, and of a server's life, with it."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*install, tmp_path / "packages", "uvloop==0.23.0"], check=True)
    packages = os.pathsep.join([str(tmp_path / "packages"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": packages.rstrip(os.pathsep)}
    used = "import uvicorn.config; print(uvicorn.Config(None).get_loop_factory().__module__)"
    tests = ["connections", "half_closed", "browser_guard", "server_openai"]
    paths = [f"tests/runtime/test_{name}.py" for name in tests]
    paths += ["tests/runtime/server/test_running.py"]
    # What is said of a full table of files is asyncio's: uvloop closes the connections at once.
    options = ["-q", "-p", "no:cacheprovider", "-k", "not running_out_of_files"]
    for command in (["-c", used], ["-m", "pytest", *options, *paths]):
        run = [sys.executable, *command]
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        if command[0] == "-c":
            assert done.stdout.strip().startswith("uvloop"), done.stdout
