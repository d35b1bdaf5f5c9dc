"""Clients that open connections and keep the server waiting; what is not HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import time

import pytest
from openai import AsyncOpenAI

from .served import served

JSON = "Content-Type: application/json\r\n"
HEAD = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{JSON}"
QUICK = (
    "limits=__import__('wherry.runtime.server.wire.http_protocol', fromlist=['x'])"
    ".ConnectionLimits(connections=40, head_seconds=0.5, body_seconds=0.5, write_seconds=0.5)"
)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """A server for bodies of at most 1000 bytes."""
    with served(tmp_path_factory.mktemp("narrow"), options="max_body=1000") as server:
        yield server


def test_a_refusal_reaches_a_client_that_still_sends(narrow):
    """Bytes that the server leaves unread would reset the connection, and the answer be lost."""
    for kind in ("Content-Length: 8000000", "Transfer-Encoding: chunked"):
        with connect(narrow) as connection:
            piece = b"x" * 100_000
            frame = b"%x\r\n%b\r\n" % (len(piece), piece) if "chunked" in kind else piece
            connection.sendall(f"{HEAD}{kind}\r\n\r\n".encode())
            for _ in range(40):
                connection.sendall(frame)
                time.sleep(0.005)
            assert error(read_all(connection), 413)["code"] == "request_too_large"


def test_a_client_that_sends_on_is_cut_off(narrow):
    with connect(narrow) as connection:
        connection.sendall(f"{HEAD}Content-Length: 80000000000\r\n\r\n".encode())
        begin = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() < begin + 10:
                connection.sendall(b"x" * 10_000)
                time.sleep(0.01)
        assert 0.5 < time.monotonic() - begin < 3


def test_clients_of_asyncio_get_their_413(narrow):
    """All 39 of 39 lost it: openai's client reads while it sends."""

    async def statuses():
        async with AsyncOpenAI(base_url=f"{narrow.url}/v1", api_key="-", max_retries=0) as client:
            said = [{"role": "user", "content": "x" * 3_000_000}]
            requests = [
                client.chat.completions.create(model="m", messages=said)  # type: ignore[arg-type]
                for _ in range(13)
            ]
            return [
                getattr(error, "status_code", error)
                for error in await asyncio.gather(*requests, return_exceptions=True)
            ]

    assert asyncio.run(statuses()) == [413] * 13


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A server with short time-outs and few connections."""
    with served(tmp_path_factory.mktemp("quick"), text="a" * 300, options=QUICK) as server:
        yield server


def connect(server):
    return socket.create_connection((server.host, server.port), timeout=20)


def read_all(connection) -> bytes:
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


def error(answer: bytes, status: int):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status), answer[:300]
    assert b"application/json" in head
    return json.loads(body)["error"]


def test_idle_connections_shut_nobody_else_out(tmp_path):
    with served(tmp_path, files=256) as server:
        idle = [connect(server) for _ in range(300)]
        end = time.monotonic() + 3
        waits = []
        while time.monotonic() < end:
            waits.append(server.health())
        assert sorted(waits)[len(waits) // 2] < 0.5
        assert len([line for line in server.log.splitlines() if "/health" not in line]) < 20
        for connection in idle:
            connection.close()


def test_few_files_are_said_and_further_connections_get_an_answer(tmp_path):
    """Of 120 connections at once 116 were closed without a byte."""
    with served(tmp_path, files=64) as server:
        assert re.search(r"may open 64 files, so that it keeps \d+ connections", server.log)
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        clients = [connect(server) for _ in range(120)]
        answers = []
        for client in clients:
            with contextlib.suppress(ConnectionError):
                client.sendall(request)
        for client in clients:
            received = b""
            # a client has what came before a reset
            with client, contextlib.suppress(ConnectionError):
                while piece := client.recv(65536):
                    received += piece
            answers.append(received.partition(b"\r\n")[0])
        answered = [a for a in answers if a.split(b" ")[1:2] in ([b"200"], [b"503"])]
        assert len(answered) > 100, answers


@pytest.mark.nightly
def test_running_out_of_files_is_logged_once(tmp_path):
    """Where the limit of connections does not help: other files of the process take the room."""
    options = QUICK.replace("=40", "=10_000").replace("head_seconds=0.5", "head_seconds=60")
    with served(tmp_path, files=128, options=options) as server:
        idle = [connect(server) for _ in range(150)]  # more than the files, less than the backlog
        time.sleep(2.5)  # asyncio tries again every second
        assert server.log.count("No connection can be accepted") == 1
        assert "Traceback" not in server.log
        assert len(server.log) < 20_000
        for connection in idle:
            connection.close()
        time.sleep(1.5)
        server.health()


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ("", "headers"),
        ("POST /v1/comp", "headers"),
        (f"{HEAD}Content-Length: 100\r\n\r\n{{", "body"),
        (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n", "body"),
    ],
)
def test_half_a_request_times_out(quick, sent, field):
    with connect(quick) as connection:
        connection.sendall(sent.encode())
        problem = error(read_all(connection), 408)
        assert field in problem["message"]


def test_trickling_does_not_help(quick):
    with connect(quick) as connection, pytest.raises(OSError):
        connection.sendall(f"{HEAD}X: ".encode())
        end = time.monotonic() + 20
        while time.monotonic() < end:
            connection.sendall(b"x")
            time.sleep(0.05)


def test_a_body_that_trickles_in_beside_others_times_out_too(quick):
    """After an answer on the same connection."""
    with connect(quick) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in connection.recv(1000)
        connection.sendall(f"{HEAD}Content-Length: 100\r\n\r\n{{".encode())
        assert b"408" in read_all(connection)


def test_who_does_not_read_is_closed(quick):
    body = json.dumps({"prompt": "a", "n": 128, "max_tokens": 250, "logprobs": 20, "stream": True})
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((quick.host, quick.port))
        connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(3)
        connection.settimeout(20)
        with pytest.raises(ConnectionResetError):
            while connection.recv(65536):
                pass
            raise ConnectionResetError  # or cut short
    quick.health()


def test_a_flood_of_small_chunks_does_not_stop_the_others(quick):
    def attack():
        with connect(quick) as connection, pytest.raises(OSError):
            connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(200):
                connection.sendall(b"1\r\na\r\n" * 10_000)
            raise ConnectionError  # time is up: the body's limit

    assert min(quick.longest_wait(attack) for _ in range(2)) < 0.5


@pytest.mark.parametrize(
    "sent",
    [
        "hello\r\n\r\n",
        "GET / FTP/1.1\r\n\r\n",
        "GET /health HTTP/1.1\r\n\r\n",  # no Host
        f"GET / HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 100_000}",
        f"{HEAD}Content-Length: -1\r\n\r\n",
        f"{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nA: \x00\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_json(quick, sent):
    with connect(quick) as connection:
        connection.sendall(sent.encode("latin-1"))
        problem = error(read_all(connection), 400)
    assert problem["code"] == "invalid_http"
    assert problem["type"] == "invalid_request_error"
    assert "Traceback" not in quick.log


def test_busy_connections_are_kept_and_new_ones_refused(quick):
    kept = [connect(quick) for _ in range(20)]
    for connection in kept:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in connection.recv(1000)
    others = [connect(quick) for _ in range(39)]
    assert quick.health() < 5
    for connection in [*kept, *others]:
        connection.close()


def test_two_lengths_close_the_connection(quick):
    """RFC 9112, section 6.3: what follows may be a request to us alone, and not to a proxy."""
    smuggled = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lengths = f"Content-Length: {5 + len(smuggled)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(quick) as connection:
        connection.sendall(f"{HEAD}{lengths}0\r\n\r\n{smuggled}".encode())
        answer = read_all(connection)
    assert "Transfer-Encoding" in error(answer, 400)["message"]
    assert answer.count(b"HTTP/1.1") == 1
