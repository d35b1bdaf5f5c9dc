"""`wherry-lite serve` against Python's server on the same compiled folder."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine
from wherry.runtime.server.app import create_app

from ..runtime.server.asking import client_of
from ..support.endless import endless_demo
from ..support.waiting import until
from . import guided_cases
from .answers import fixed, joined, meaning
from .lite import Server, cache, command, events, lite
from .request_cases import ANSWERS, ASK, GREEDY, STREAMS

pytestmark = pytest.mark.cpu
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MAX_BODY = 20_000


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(ensure_artifact("demo", target="cpu"))


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    return endless_demo(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    cache_folder = tmp_path_factory.mktemp("lite")
    with cache(cache_folder):
        yield cache_folder


@pytest.fixture(scope="module")
def server(folder, place):
    with Server(command("serve", folder, "--max-body", MAX_BODY), place) as started:
        yield started


@pytest.fixture(scope="module")
def python(folder):
    """A client of Python's server."""
    with MLCEngine(folder) as engine:
        yield client_of(create_app(engine, max_body=MAX_BODY))


def path_of(request: dict) -> str:
    return CHAT if "messages" in request else COMPLETIONS


@pytest.mark.parametrize("i", [0, 1, 2, 3, 12, 13, 14])
def test_answers_are_python_s(server, python, i):
    request = {**ANSWERS[i], "model": "demo"}
    status, answer, headers = server.ask("POST", path_of(request), request)
    reference = python.post(path_of(request), json=request)
    assert (status, headers["Content-Type"]) == (200, reference.headers["Content-Type"])
    assert fixed(answer) == fixed(reference.json())


@pytest.mark.skipif(not guided_cases.available(), reason="built without xgrammar")
@pytest.mark.parametrize("i", [0, 10, 14])
def test_constrained_answers_are_python_s(server, python, i):
    request = {**guided_cases.ANSWERS[i], "model": "demo"}
    status, answer, _ = server.ask("POST", CHAT, request)
    assert status == 200
    assert fixed(answer) == fixed(python.post(CHAT, json=request).json())


@pytest.mark.parametrize("i", [0, 1, 2])
def test_streams_are_python_s(server, python, i):
    request = {**STREAMS[i], "stream": "yes", "stream_options": {"include_usage": True}}
    status, text, headers = server.ask("POST", path_of(request), request)
    reference = python.post(path_of(request), json=request)
    assert status == 200
    for name in ("Content-Type", "Cache-Control", "X-Accel-Buffering"):
        assert headers[name] == reference.headers[name]
    streamed, expected = events(text), events(reference.text)
    assert fixed(streamed[-1]) == fixed(expected[-1])
    assert joined(streamed) == joined(expected)


def test_the_model_is_listed_as_python_s(server, python):
    for path in ("/v1/models", "/v1/models/demo", "/v1/models/other"):
        status, answer, _ = server.ask("GET", path)
        reference = python.get(path)
        expected = reference.json()
        for listing in (answer, expected):
            for model in listing.get("data", [listing]):
                if "created" in model:
                    assert model.pop("created") > 1_700_000_000
        assert (status, answer) == (reference.status_code, expected)


WRONG = [
    ("POST", CHAT, {"messages": []}, {}),
    ("POST", CHAT, {"prompt": "x"}, {}),
    ("POST", COMPLETIONS, {"messages": ASK}, {}),
    ("POST", CHAT, {"messages": ASK, "model": "gpt-4"}, {}),
    ("POST", CHAT, {"messages": ASK, "model": 5, "n": 0}, {}),
    ("POST", CHAT, {"messages": ASK, "stream": True, "temperature": 9}, {}),
    ("POST", COMPLETIONS, {"prompt": "x", "model": "x" * 300}, {}),
    ("POST", CHAT, b"{", {}),
    ("POST", CHAT, b'{"messages": [' + b"[" * 70, {}),
    ("POST", CHAT, b"", {}),
    ("POST", CHAT, b"[1]", {}),
    ("POST", CHAT, b'"text"', {}),
    ("POST", CHAT, b'{"messages": [{"role": "user", "content": "\xff"}]}', {}),
    ("POST", CHAT, b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}]}', {}),
    ("POST", CHAT, b'{"messages": [{"role": "user", "content": "\\ud800"}]}', {}),
    ("POST", CHAT, b'\xef\xbb\xbf{"messages": []}', {}),
    ("POST", CHAT, {"messages": ASK, "logit_bias": {"a": 1, "-1": 1}}, {}),
    ("POST", CHAT, {"messages": ASK, "logit_bias": {"1": 101, "2.5": 1}}, {}),
    ("POST", CHAT, {"messages": ASK, "logit_bias": {"9" * 30: 1}}, {}),
    ("POST", CHAT, {"messages": ASK, "logit_bias": [1]}, {}),
    ("POST", CHAT, b" " * (MAX_BODY + 1), {}),
    ("POST", CHAT, b"{}", {"Content-Type": "text/plain"}),
    ("POST", CHAT, {"messages": ASK}, {"Host": "evil.example"}),
    ("GET", "/v1/models", None, {"Host": "evil.example:80"}),
    ("GET", "/nothing", None, {}),
    ("GET", CHAT, None, {}),
    ("DELETE", "/v1/models", None, {}),
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=range(len(WRONG)))
def test_wrong_requests_are_refused_as_by_python(server, python, case):
    method, path, body, headers = case
    status, answer, sent_headers = server.ask(method, path, body, **headers)
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    reference = python.request(
        method, path, content=data, headers={"Content-Type": "application/json", **headers}
    )
    assert status == reference.status_code, answer
    assert meaning(answer) == meaning(reference.json())
    for name in ("Allow", "WWW-Authenticate"):
        assert sent_headers.get(name) == reference.headers.get(name)


def test_pages_of_other_sites_are_kept_away(server):
    for origin, expected in ((server.url, 200), ("https://evil.example", 403), ("null", 403)):
        assert server.ask("GET", "/v1/models", None, Origin=origin)[0] == expected
    for host in ("[::1]:80", "localhost", "a.localhost:1", "192.168.1.7:8000", "LOCALHOST."):
        assert server.ask("GET", "/health", None, Host=host)[0] == 200
    for host in ("localhost.evil.example", "127.0.0.1.example", "127.0.0.1@evil.example"):
        assert server.ask("GET", "/health", None, Host=host)[0] == 403


def test_a_body_without_a_length_is_limited_too(server):
    connection = server.connection()
    try:
        pieces = (b" " * 1000 for _ in range(1000))
        connection.request(
            "POST", CHAT, pieces, {"Content-Type": "application/json"}, encode_chunked=True
        )
        answer = connection.getresponse()
        error = json.loads(answer.read())["error"]
        assert (answer.status, error["code"]) == (413, "request_too_large")
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was closed while we sent
    finally:
        connection.close()
    assert server.ask("GET", "/health")[:2] == (200, {"status": "ok"})


def test_eight_clients_at_once_are_answered_as_one_alone(server):
    requests = [
        {"messages": [{"role": "user", "content": f"Number {i}"}], "temperature": 0.7, "seed": i,
         "max_tokens": 16 + i}
        for i in range(8)
    ]  # fmt: skip
    alone = [server.ask("POST", CHAT, request)[1] for request in requests]
    with ThreadPoolExecutor(8) as clients:
        together = list(clients.map(lambda r: server.ask("POST", CHAT, r)[1], requests))
    assert [fixed(a) for a in together] == [fixed(a) for a in alone]


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_pages(endless, place, stream):
    with Server(command("serve", endless), place) as server:
        connection = server.connection()
        body = json.dumps({"messages": ASK, "stream": stream, "n": 4}).encode()
        connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
        if stream:
            connection.getresponse().read(200)
        until(lambda: server.stats()["decode_tokens"])
        connection.close()
        server.wait_until_idle()
        stats = server.stats()
        assert stats["decode_tokens"] < 4 * stats["context"] // 2


def anonymous(server: Server) -> int:
    """Memory of the process that no file is behind, in kB."""
    lines = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def test_requests_that_have_ended_are_forgotten(server):
    request = {"messages": ASK, "max_tokens": 2, "temperature": 0, "n": 3}
    for count in (60, 100):
        before = anonymous(server)
        for _ in range(count):
            assert server.ask("POST", CHAT, request)[0] == 200
    assert anonymous(server) < before + 200  # 7 kB a request, once


def test_a_key(folder, place):
    words = command("serve", folder, "--quiet")
    with Server(words, place, {"WHERRY_API_KEY": "secret"}) as server:
        assert server.ask("GET", "/v1/models")[0] == 401
        status, answer, headers = server.ask("GET", "/v1/models", Authorization="Bearer secreT")
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        assert headers["WWW-Authenticate"] == "Bearer"
        for given in ({"Authorization": "bearer secret"}, {"x-api-key": "secret"}):
            assert server.ask("GET", "/v1/models", **given)[0] == 200
        assert server.ask("GET", "/health", Host="any.example")[0] == 200


def test_the_first_signal_lets_requests_end_and_the_second_ends_them(endless, place):
    for signals, limit, finish in ((1, 2000, "length"), (2, None, "shutting_down")):
        with Server(command("serve", endless), place) as server:
            connection = server.connection()
            body = json.dumps({"messages": ASK, "stream": True, "max_tokens": limit}).encode()
            connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            first = answer.read(1)
            server.process.send_signal(signal.SIGTERM)
            until(lambda: is_refused(server))
            if signals == 2:
                server.process.send_signal(signal.SIGINT)
            text = (first + answer.read()).decode()
            connection.close()
            assert server.process.wait(60) == 0
            if finish == "length":
                assert events(text)[-1]["choices"][0]["finish_reason"] == finish
            else:
                last = json.loads(text.strip().split("\n")[-1].removeprefix("data: "))
                assert last["error"]["code"] == finish


def is_refused(server: Server) -> bool:
    """Whether the port is closed."""
    try:
        server.ask("GET", "/health")
    except OSError:
        return True
    return False


def test_what_it_cannot_serve(folder, place, server):
    done = lite("serve", folder, "--host", "0.0.0.0")
    assert done.returncode == 2 and "there is no API key" in done.stderr
    port = server.url.rpartition(":")[2]
    done = lite("serve", folder, "--port", port)
    assert done.returncode == 1 and "--port N" in done.stderr
    assert f"127.0.0.1 POST {CHAT} 200" in server.log()


def threads(server: Server) -> int:
    """How many the process has."""
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def test_idle_connections_take_no_thread(server):
    """More of them than requests are answered at once; half have asked before."""
    before, begun = threads(server), time.monotonic()
    idle = [server.connection() for _ in range(300)]
    try:
        for i, connection in enumerate(idle):
            connection.connect()
            if i % 2:
                connection.request("GET", "/health")
                assert connection.getresponse().read() == b'{"status":"ok"}'
        until(lambda: threads(server) <= before)
        with ThreadPoolExecutor(4) as clients:
            request = {"messages": ASK, **GREEDY}
            answers = list(clients.map(lambda _: server.ask("POST", CHAT, request)[0], range(4)))
        assert answers == [200] * 4
        idle[-1].request("GET", "/health")
        assert idle[-1].getresponse().status == 200
        assert time.monotonic() - begun < 4.5  # an idle one is kept for five seconds
    finally:
        for connection in idle:
            connection.close()


def test_requests_that_arrive_together_are_answered_in_order(server):
    """In one piece, and in pieces of a byte."""
    host, port = server.url.removeprefix("http://").split(":")
    requests = b"".join(
        f"GET /{path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        for path in ("health", "nothing", "ready")
    )
    for size in (len(requests), 1):
        with socket.create_connection((host, int(port)), 60) as connection:
            for at in range(0, len(requests), size):
                connection.sendall(requests[at : at + size])
            connection.shutdown(socket.SHUT_WR)
            responses = b"".join(iter(lambda c=connection: c.recv(65536), b""))
        assert re.findall(rb"HTTP/1\.1 (\d+) ", responses) == [b"200", b"404", b"200"], responses


@pytest.mark.nightly
def test_an_idle_connection_is_closed(server):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        begun = time.monotonic()
        assert connection.recv(1) == b""
        assert 4 < time.monotonic() - begun < 20


def test_a_connection_is_used_again(server):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    for _ in range(3):
        connection.request(
            "POST",
            CHAT,
            json.dumps({"messages": []}).encode(),
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        assert answer.status == 400 and b"messages" in answer.read()
    connection.close()
