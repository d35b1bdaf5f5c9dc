"""Requests that are almost right: seeded mutations of bodies, headers and bytes of HTTP.

Whatever comes in, the answer is JSON of OpenAI's shape with a status below 500, the server goes on,
and nothing stays behind in the engine. A failure names its seed: run that alone with -k.
"""

# ruff: noqa: E501 - values side by side

from __future__ import annotations

import copy
import json
import random
import socket
import time
import urllib.request
from contextlib import suppress

import pytest
from starlette.testclient import TestClient

from wherry.runtime import MLCEngine, create_app

from .live_server import live

PATHS = ("/v1/chat/completions", "/v1/completions")
CHAT = {
    "model": "small",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "the cat"}], "name": "a"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": {}}]},
        {"role": "tool", "content": "sat", "tool_call_id": "x"},
    ],
    "max_tokens": 8,
    "temperature": 0.5,
    "top_p": 0.9,
    "n": 2,
    "seed": 3,
    "stop": ["END", "\n\n"],
    "stream": True,
    "stream_options": {"include_usage": True},
    "presence_penalty": 0.1,
    "logit_bias": {"7": 1.5},
    "logprobs": True,
    "top_logprobs": 2,
    "chat_template_kwargs": {"enable_thinking": False},
    "user": "me",
    "response_format": {"type": "text"},
    "tools": [],
}
COMPLETION = {
    "model": "small",
    "prompt": ["the cat", "a"],
    "max_tokens": 5,
    "n": 2,
    "logprobs": 1,
    "stop": "END",
    "echo": False,
    "suffix": "",
}
# Values that programs are surprised by.
ODD = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 0.0, -0.0, 1e308, -1e-320,
    float("nan"), float("inf"), "", " ", "a", "\x00", "\ud800", "é" * 50, "日本", "🎉", "\u202e", "x" * 5000,
    "1", "null", "%s%n", "{{ 7 * 7 }}", "${x}", "\r\nX: y", [], [[]], [None], [[0]], [-1], [2**31], ["a", 1],
    [1, "a"], [1.5], [True], {}, {"a": {}}, {"type": "text"}, {"type": "image_url"}, {"role": "user"},
]  # fmt: skip
ODD_TEXTS = [v for v in ODD if isinstance(v, str)]
TYPES = ["application/json", "text/plain", "application/json; charset=utf-16", "", "x/y; z", "\xff"]
HEADERS = {
    "Host": ["localhost", "evil.example", "[::1]", "[", "", "a\tb", "127.0.0.1:99999999", "\xe9"],
    "Origin": ["null", "https://evil.example", "http://localhost", "", "\xff", "x" * 5000],
    "Authorization": ["Bearer k", "Basic x", "Bearer", "\xff", ""],
    "Content-Encoding": ["gzip", "x"],
    "Accept": ["text/html", "*/*;q=x"],
    "Cookie": ["a=b", "\xff"],
    "X-Forwarded-For": ["1.2.3.4", "\xff"],
    "Access-Control-Request-Method": ["POST", "\xff"],
}


def places(value, pairs=None):
    """Every (container, key) of a JSON value."""
    pairs = [] if pairs is None else pairs
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        pairs.append((value, key))
        if isinstance(inner, (dict, list)):
            places(inner, pairs)
    return pairs


def mutate(rng: random.Random, value):
    """A copy with one or more changes; the first wrong one hides the others."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        container, key = rng.choice(places(value) or [({"x": 0}, "x")])
        kind = rng.randrange(6)
        if isinstance(container[key], str) and rng.random() < 0.5:
            container[key] = rng.choice([text := rng.choice(ODD_TEXTS), container[key] + text])
        elif kind < 3:
            container[key] = copy.deepcopy(rng.choice(ODD))
        elif kind == 3 and isinstance(container, dict):
            container[rng.choice(["", "\ud800", "x" * 300, "tools", "n", "é", "__class__"])] = (
                copy.deepcopy(rng.choice(ODD))
            )
        elif kind == 4:
            container[key] = [copy.deepcopy(container[key])] * rng.randint(0, 40)
        else:
            nested = copy.deepcopy(rng.choice(ODD))
            for _ in range(rng.choice([2, 60, 70, 150])):
                nested = [nested] if rng.random() < 0.5 else {"a": nested}
            container[key] = nested
    return value


def spoil(rng: random.Random, data: bytes) -> bytes:
    """Bytes changed, cut, doubled or put in."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randint(1, 20)]
        elif kind == 2:
            data[at:at] = data[at : at + rng.randint(1, 50)]
        elif kind == 3:
            data[at:at] = rng.choice(
                [b"\\", b'"', b"\\ud800", b"[", b"{", b"\x00", b"\xed\xa0\x80", b"1e999"]
            )
        else:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(data)


def body_of(rng: random.Random, path: str) -> bytes:
    value = mutate(rng, CHAT if "chat" in path else COMPLETION)
    data = json.dumps(value, ensure_ascii=rng.random() < 0.7).encode(errors="surrogatepass")
    return spoil(rng, data) if rng.random() < 0.3 else data


def headers_of(rng: random.Random) -> dict[bytes, bytes]:
    kind = TYPES[0] if rng.random() < 0.9 else rng.choice(TYPES)
    chosen = {"Content-Type": kind}
    if rng.random() < 0.15:
        name = rng.choice(list(HEADERS))
        chosen[name] = rng.choice(HEADERS[name])
    return {n.encode(): v.encode("latin-1") for n, v in chosen.items()}


def check_answer(status: int, kind: str, text: str) -> None:
    """JSON, or events, of OpenAI's shape."""
    assert status < 500, text
    if status == 200 and kind.startswith("text/event-stream"):
        *events, done = [e.removeprefix("data: ") for e in text.strip().split("\n\n")]
        assert done == "[DONE]"
        assert all("choices" in json.loads(e) for e in events)
        return
    assert kind.startswith("application/json"), (status, kind, text[:200])
    answer = json.loads(text)
    if status != 200:
        assert set(answer["error"]) == {"message", "type", "param", "code"}
        assert len(answer["error"]["message"]) < 10_000


def fuzz_app(make, seeds) -> None:
    model = make("the cat sat ", context=600, pages=4096)
    client = TestClient(
        create_app(MLCEngine.of(model)), base_url="http://localhost", raise_server_exceptions=False
    )
    for seed in seeds:
        rng = random.Random(seed)
        path = rng.choice(PATHS)
        body, headers = body_of(rng, path), headers_of(rng)
        try:
            answer = client.post(path, content=body, headers=headers)
            check_answer(answer.status_code, answer.headers.get("content-type", ""), answer.text)
        except Exception as e:
            raise AssertionError(f"seed {seed}: POST {path} {headers} {body[:2000]!r}") from e
    assert client.get("/health").json() == {"status": "ok"}
    wait_until_empty(model)


def wait_until_empty(model) -> None:
    end = time.monotonic() + 10
    while model.dispatcher.active or model.stats().pages_free < model.stats().pages_total:
        assert time.monotonic() < end, model.stats()
        time.sleep(0.01)


def fuzz_wire(make, seeds) -> None:
    """Whole requests, spoiled byte by byte, on connections that may end anywhere."""
    model = make("the cat sat ", context=600, pages=4096)
    with live(model) as url:
        host, port = url.removeprefix("http://").split(":")
        for seed in seeds:
            rng = random.Random(seed)
            data = wire(rng)
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                # The server may close it while the rest is still being sent.
                with suppress(ConnectionResetError, BrokenPipeError):
                    connection.sendall(
                        data[: rng.choice([len(data), rng.randrange(len(data) + 1)])]
                    )
                if rng.random() < 0.8:
                    answer = first_of(connection)
                    assert not answer.startswith(b"HTTP/1.1 5"), (seed, data, answer)
        with urllib.request.urlopen(f"{url}/health", timeout=5) as healthy:
            assert json.load(healthy) == {"status": "ok"}
        wait_until_empty(model)


def first_of(connection: socket.socket) -> bytes:
    """What comes within a moment: many of these requests are half ones, which are waited for."""
    connection.settimeout(0.1)
    try:
        return connection.recv(65536)
    except (TimeoutError, ConnectionResetError):
        return b""


def wire(rng: random.Random) -> bytes:
    path = rng.choice(PATHS)
    body = body_of(rng, path) if rng.random() < 0.5 else json.dumps(COMPLETION).encode()
    length = len(body) if rng.random() < 0.8 else rng.choice([0, 1, len(body) + 5, -1, 10**20])
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    if rng.random() < 0.3:
        cut = rng.randrange(len(body) + 1)
        chunks = [c for c in (body[:cut], body[cut:]) if c]
        body = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n"
    else:
        head += f"Content-Length: {length}\r\n\r\n"
    data = head.encode() + body
    return spoil(rng, data) if rng.random() < 0.7 else data


@pytest.mark.parametrize("start", [0])
def test_bodies_and_headers(make, start):
    fuzz_app(make, range(start, start + 400))


@pytest.mark.parametrize("start", [0])
def test_bytes_on_the_wire(make, start):
    fuzz_wire(make, range(start, start + 150))


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(1_000_000, 1_060_000, 5000))
def test_many_bodies_and_headers(make, start):
    fuzz_app(make, range(start, start + 5000))


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(2_000_000, 2_010_000, 2000))
def test_many_bytes_on_the_wire(make, start):
    fuzz_wire(make, range(start, start + 2000))
