"""Requests of Ollama's API that are almost right, as test_fuzz_requests.py makes OpenAI's.

Whatever comes in, the answer is below 500 and of Ollama's shape, and nothing stays behind.
"""

from __future__ import annotations

import json

import pytest

from .almost_right import fuzz

OPTIONS = {
    "num_predict": 8,
    "num_ctx": 512,
    "temperature": 0.5,
    "top_k": 4,
    "repeat_penalty": 1.1,
    "repeat_last_n": 64,
    "seed": 1,
    "stop": ["END"],
    "mirostat": 0,
    "num_gpu": 1,
}
CHAT = {
    "model": "small",
    "messages": [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "the cat", "images": []},
        {
            "role": "assistant",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "tool_name": "f", "content": "sat"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "format": "",
    "options": OPTIONS,
    "keep_alive": "5m",
    "think": False,
    "logprobs": True,
    "top_logprobs": 1,
    "stream": True,
}
GENERATE = {
    "model": "small:latest",
    "prompt": "Once upon",
    "system": "a",
    "raw": False,
    "suffix": "",
    "context": [],
    "template": "",
    "options": OPTIONS,
    "stream": False,
}
BODIES = {
    "/api/chat": CHAT,
    "/api/generate": GENERATE,
    "/api/embed": {"model": "small", "input": ["a", "b"], "dimensions": 4, "truncate": True},
    "/api/embeddings": {"model": "small", "prompt": "a", "keep_alive": 0},
    "/api/show": {"model": "small", "name": "small", "verbose": True},
    "/api/pull": {"model": "org/name", "stream": True, "insecure": False},
}


def check(path, answer):
    assert answer.status_code < 500, answer.text
    kind = answer.headers["content-type"]
    if kind.startswith("application/x-ndjson"):
        assert json.loads(answer.text.splitlines()[-1])["done"] is True
        return
    assert kind.startswith("application/json")
    if answer.status_code != 200:
        assert set(answer.json()) == {"error"}
        assert 0 < len(answer.json()["error"]) < 10_000


def test_bodies(make):
    fuzz(make, BODIES, check, range(400))


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(1_000_000, 1_020_000, 5000))
def test_many_bodies(make, start):
    fuzz(make, BODIES, check, range(start, start + 5000))
