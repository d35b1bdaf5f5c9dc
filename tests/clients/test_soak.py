"""Thousands of requests of all kinds, many of them broken off: nothing is stuck, nothing leaks."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from .conftest import KEY

pytestmark = pytest.mark.nightly

REQUESTS, WARM_UP, CLIENTS = 5_000, 500, 16
GROWTH = 1.05  # of resident memory after the warm-up
WORDS = "fox spider moon river cat bread seven night story king".split()
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"where": {"type": "string", "maxLength": 8}},
            "required": ["where"],
            "additionalProperties": False,
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"legs": {"type": "integer", "maximum": 8, "minimum": 0}},
    "required": ["legs"],
    "additionalProperties": False,
}


def a_request(rng: random.Random) -> tuple[str, dict]:
    """A path and its body: any protocol, any feature."""
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 40)))
    messages = [{"role": "user", "content": text}]
    common = {"model": "demo", "seed": rng.randint(0, 99), "stream": rng.random() < 0.5}
    chat = common | {"messages": messages, "max_tokens": rng.randint(1, 24)}
    formats = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    return rng.choice(
        [
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", chat | {"n": 3, "logprobs": True, "top_logprobs": 2}),
            ("/v1/chat/completions", chat | {"tools": [TOOL], "tool_choice": "required"}),
            ("/v1/chat/completions", chat | {"response_format": formats, "temperature": 0}),
            ("/v1/completions", common | {"prompt": [text, "once"], "max_tokens": 12, "stop": "."}),
            ("/v1/completions", common | {"prompt": text, "echo": True, "logprobs": 1}),
            ("/v1/responses", common | {"input": text, "max_output_tokens": 16, "store": False}),
            ("/v1/messages", {"model": "demo", "messages": messages, "max_tokens": 16}),
            ("/api/chat", {"model": "demo", "messages": messages, "options": {"num_predict": 9}}),
            ("/v1/embeddings", {"model": "demo", "input": [text, "a"]}),
            ("/tokenize", {"model": "demo", "prompt": text}),
        ]
    )


class Client(threading.Thread):
    """Sends its share of the requests, and treats each answer in a way of its own."""

    def __init__(self, url: str, seed: int, count: int, outcomes: Counter) -> None:
        super().__init__(daemon=True)
        self._address = urllib.parse.urlsplit(url).netloc
        self._rng = random.Random(seed)
        self._count, self._outcomes = count, outcomes
        self.problems: list[str] = []

    def run(self) -> None:
        for _ in range(self._count):
            path, fields = a_request(self._rng)
            try:
                self._outcomes[self._send(path, fields)] += 1
            except Exception as e:
                self.problems.append(f"{path}: {type(e).__name__}: {e}")

    def _send(self, path: str, fields: dict) -> str:
        body, headers = json.dumps(fields).encode(), dict(HEADERS)
        manner = self._rng.choices(
            ["read", "leave", "leave in the middle", "malformed", "too late"], [6, 1, 2, 1, 1]
        )[0]
        if manner == "malformed":
            at = self._rng.randrange(len(body))
            body = body[:at] + self._rng.choice([b"", b"\x00", b"}", b'"']) + body[at + 1 :]
        if manner == "too late":
            headers["X-Request-Timeout"] = "0.05"
        connection = http.client.HTTPConnection(self._address, timeout=120)
        try:
            connection.request("POST", path, body, headers)
            if manner == "leave":
                return manner
            answer = connection.getresponse()
            if manner == "leave in the middle":
                answer.read(self._rng.randint(1, 200))
                return manner
            answer.read()
            if answer.status >= 500:
                self.problems.append(f"{path} ({manner}): {answer.status}")
            return f"{manner}: {answer.status}"
        finally:
            connection.close()


def resident(process: int) -> int:
    """Bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def send(url: str, count: int, seed: int) -> Counter:
    outcomes: Counter = Counter()
    clients = [
        Client(url, seed * CLIENTS + i, count // CLIENTS + 1, outcomes) for i in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join(1800)
        assert not client.is_alive(), "a request is stuck"
        assert not client.problems, client.problems[:10]
    return outcomes


def stats(url: str) -> dict:
    request = urllib.request.Request(f"{url}/stats", headers=HEADERS)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def at_rest(url: str) -> dict:
    """What the server says when all requests have left it; their pages are free."""
    end = time.monotonic() + 30
    while True:
        current = stats(url)
        cache = current["kv_cache"]
        if current["state"] == "idle" and cache["pages_free"] == cache["pages_total"]:
            return current
        assert time.monotonic() < end, current
        time.sleep(0.1)


def fill_the_cache(url: str) -> None:
    """Touch the memory of all pages: the system counts it from then on."""
    rng = random.Random(7)
    for _ in range(100):
        cache = stats(url)["kv_cache"]
        if cache["pages_cached"] > 0.95 * cache["pages_total"]:
            return
        prompt = " ".join(rng.choices(WORDS, k=300))
        body = json.dumps({"model": "demo", "prompt": prompt, "max_tokens": 1}).encode()
        request = urllib.request.Request(f"{url}/v1/completions", body, HEADERS)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
    raise AssertionError(stats(url))


def test_memory_is_flat_and_nothing_stays_behind(server):
    fill_the_cache(server.url)
    send(server.url, WARM_UP, seed=0)
    at_rest(server.url)
    before = resident(server.process.pid)
    outcomes = send(server.url, REQUESTS - WARM_UP, seed=1)
    last = at_rest(server.url)
    after = resident(server.process.pid)
    print(dict(outcomes), f"{before / 1e6:.0f} MB -> {after / 1e6:.0f} MB", last)
    assert outcomes["read: 200"] > REQUESTS / 4
    assert after < before * GROWTH
