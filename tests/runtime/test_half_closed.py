"""Clients that have sent all that they will send: some wait for their answer, some are gone."""

from __future__ import annotations

import json
import socket
import time
from urllib.parse import urlsplit

import pytest

from .conftest import make_model
from .live_server import live
from .test_connections import HEAD, read_all


def half_closed(server, fields: dict, version: str = "1.1", more: str = ""):
    """A connection that sends a request, and then nothing more."""
    body = json.dumps({"prompt": "a", "max_tokens": 20} | fields)
    head = f"{HEAD}Content-Length: {len(body)}\r\n\r\n".replace("HTTP/1.1", f"HTTP/{version}")
    connection = socket.create_connection(server, timeout=60)
    connection.sendall(f"{head}{body}{more}".encode())
    connection.shutdown(socket.SHUT_WR)
    return connection


@pytest.fixture(scope="module")
def slow():
    """The address of a server whose answers never end of themselves, a token each 20 ms."""
    model = make_model(None, context=4096, step_seconds=0.02)
    with live(model) as url:
        yield urlsplit(url).hostname, urlsplit(url).port
    model.close()


def active(server) -> int:
    with socket.create_connection(server, timeout=60) as connection:
        connection.sendall(b"GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return json.loads(read_all(connection).partition(b"\r\n\r\n")[2])["requests"]["active"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_client_that_sends_no_more_gets_its_answers(slow, version):
    with half_closed(slow, {}, version) as connection:
        *heads, body = read_all(connection).split(b"\r\n\r\n")
    assert json.loads(body)["usage"]["completion_tokens"] == 20
    interim, final = heads[:-1], heads[-1]
    assert b" 200 OK" in final
    assert all(head.startswith(b"HTTP/1.1 100") for head in interim)
    assert bool(interim) == (version == "1.1")  # an older client knows of none
    with half_closed(slow, {"stream": True}, version) as connection:
        events = read_all(connection).partition(b"\r\n\r\n")[2]
    said = [json.loads(line[6:]) for line in events.splitlines() if line.startswith(b"data: {")]
    assert "".join(chunk["choices"][0]["text"] for chunk in said) == " " * 20
    assert events.rstrip().endswith(b"data: [DONE]" if version == "1.0" else b"\r\n0")


def test_pipelined_requests_of_a_client_that_sends_no_more(slow):
    with half_closed(
        slow, {}, more="GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ) as connection:
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize("fields", [{}, {"stream": True}], ids=["whole", "stream"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_client_that_is_gone_is_not_answered(slow, fields, version):
    half_closed(slow, {"max_tokens": 4000, **fields}, version).close()
    end = time.monotonic() + 20
    while active(slow):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_client_that_is_gone_while_it_is_queued_frees_its_place(slow):
    """Nothing of a stream that waits is written."""
    first = [half_closed(slow, {"max_tokens": 4000}) for _ in range(16)]
    queued = half_closed(slow, {"stream": True})
    while active(slow) < 17:
        time.sleep(0.02)
    queued.close()
    end = time.monotonic() + 20
    while active(slow) > 16:
        assert time.monotonic() < end
        time.sleep(0.02)
    for connection in first:
        connection.close()
