"""One client's requests, and what they do to the others.

Each body is under the limit of 16 MiB, and was seen to stop the server for seconds to minutes.
"""

from __future__ import annotations

import json
import threading

import pytest

from .served import served

MB = 2**20
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def chat(content: str, **fields) -> bytes:
    messages = [{"role": "user", "content": content}]
    return json.dumps({"messages": messages, **fields}, ensure_ascii=False).encode()


def many_messages() -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "a"}] * 300_000}).encode()


def names(count: int) -> bytes:
    return b"{" + b",".join(b'"x%d":0' % i for i in range(count)) + b"}"


# name -> path, body, status
BODIES = {
    "nulls": (COMPLETIONS, b'{"prompt":[' + b"null," * 2_500_000 + b"null]}", 400),
    "texts": (COMPLETIONS, b'{"prompt":[' + b'"a",' * 3_000_000 + b'"a"]}', 400),
    "fewer texts": (COMPLETIONS, b'{"prompt":[' + b'"a",' * 300_000 + b'"a"]}', 400),
    "lists": (COMPLETIONS, b'{"prompt":[' + b"[5]," * 2_000_000 + b"[5]]}", 400),
    "ids": (COMPLETIONS, b'{"prompt":[' + b"5," * 500_000 + b"5]}", 400),
    "a long chat": (CHAT, chat("a" * 15_000_000), 400),
    "a long prompt": (COMPLETIONS, json.dumps({"prompt": "é" * 2_500_000}).encode(), 400),
    "messages": (CHAT, many_messages(), 400),
    "wrong messages": (CHAT, b'{"messages":[' + b"0," * 4000 + b"0]}", 400),
    "parts": (CHAT, chat([{"type": "x"}] * 60_000), 400),  # type: ignore[arg-type]
    "biases": (CHAT, chat("a", logit_bias={f"x{i}": "y" for i in range(60_000)}), 400),
    "names": (CHAT, names(60_000), 400),
    "more names": (CHAT, names(1_000_000), 400),
    "a long name": (CHAT, chat("a", model="x" * 15_000_000), 400),
    "depth": (CHAT, b"[" * (16 * MB), 400),
    "digits": (COMPLETIONS, b'{"prompt":[' + (b"1" * 4000 + b",") * 4000 + b"0]}", 400),
    "quotes": (COMPLETIONS, b'"' * (16 * MB), 400),
    "backslashes": (COMPLETIONS, b'{"prompt":"' + b"\\" * (15 * MB) + b'"}', 400),
    "stop strings": (
        COMPLETIONS,
        json.dumps(
            {
                "prompt": "a",
                "n": 32,
                "max_tokens": 500,
                "stop": ["one " * 249 + f"{i:04}" for i in range(1024)],
            }
        ).encode(),
        200,
    ),
    "logprobs": (
        COMPLETIONS,
        json.dumps({"prompt": "a", "n": 32, "logprobs": 20, "max_tokens": 400}).encode(),
        200,
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served"), text="one " * 1000) as server:
        yield server


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.by_day(
    "nulls", "ids", "a long chat", "messages", "biases", "a long name", "depth", "stop strings"
)
def test_no_body_stops_the_server_for_others(server, name):
    path, body, status = BODIES[name]
    assert len(body) <= 16 * MB

    def attack():
        answered, answer = server.post(path, body)
        assert answered == status, answer[:500]
        assert status == 200 or len(answer) < 10_000

    before = server.peak
    waits = []
    while len(waits) < 3 and min(waits, default=9) >= 0.5:  # other programs run here too
        waits.append(server.longest_wait(attack))
    assert min(waits) < 0.5, waits
    assert server.peak - before < 400 * MB


@pytest.mark.nightly
def test_many_at_once_do_not_either(server):
    """One client, sixteen connections: each body is held, and one is parsed at a time."""
    bodies = [BODIES[name] for name in ("a long chat", "quotes", "ids", "a long prompt")] * 4

    statuses: list[int] = []

    def post(path: str, body: bytes) -> None:
        try:
            statuses.append(server.post(path, body)[0])
        except ConnectionError:  # refused while the body was still being sent
            statuses.append(429)

    def attack():
        threads = [threading.Thread(target=post, args=body[:2]) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) <= {400, 429}

    waits = []
    while len(waits) < 3 and min(waits, default=9) >= 0.5:
        waits.append(server.longest_wait(attack))
    assert min(waits) < 0.5, waits
    assert server.peak < 1000 * MB


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A model whose context a whole body might fill."""
    with served(tmp_path_factory.mktemp("large"), context=131_072) as server:
        yield server


@pytest.mark.parametrize("text", ["a", " ", "ab ", "日", "q\n"])
def test_long_texts_for_a_large_context(large, text):
    body = chat(text * (4_000_000 // len(text)))  # fewer than 32 characters a token
    assert 4_000_000 <= len(body) <= 16 * MB

    def attack():
        assert large.post(CHAT, body)[0] == 400

    before = large.peak
    waits = []
    while len(waits) < 3 and min(waits, default=9) >= 0.5:
        waits.append(large.longest_wait(attack))
    assert min(waits) < 0.5, waits
    assert large.peak - before < 600 * MB
