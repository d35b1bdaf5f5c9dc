"""Outputs that are asked to be longer than the context: each protocol as its own servers do it.

The table of docs/server.md.
"""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from wherry.runtime import MLCEngine, create_app

CONTEXT, MORE = 64, 1000
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def post(make):
    model = make(None, context=CONTEXT)  # it never ends by itself
    client = TestClient(create_app(MLCEngine.of(model)), base_url="http://localhost")
    return lambda path, **fields: client.post(path, json={"model": "small", **fields})


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"messages": HI, "max_tokens": MORE}),
        ("/v1/chat/completions", {"messages": HI, "max_completion_tokens": MORE}),
        ("/v1/completions", {"prompt": "Hi", "max_tokens": MORE}),
    ],
)
def test_chat_and_completions_refuse(post, path, fields):
    answer = post(path, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert "1000 in the completion" in answer.json()["error"]["message"]


def test_responses_end_incomplete(post):
    answer = post("/v1/responses", input="Hi", max_output_tokens=MORE).json()
    assert (answer["status"], answer["max_output_tokens"]) == ("incomplete", MORE)
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer["usage"]["total_tokens"] == CONTEXT
    short = post("/v1/responses", input="Hi", max_output_tokens=5).json()
    assert short["usage"]["output_tokens"] == 5


def test_anthropic_names_the_window(post):
    answer = post("/v1/messages", messages=HI, max_tokens=MORE).json()
    assert answer["stop_reason"] == "model_context_window_exceeded"
    assert answer["usage"]["input_tokens"] + answer["usage"]["output_tokens"] == CONTEXT


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/api/chat", {"messages": HI}),
        ("/api/generate", {"prompt": "Hi"}),
        ("/api/generate", {"prompt": "Hi", "raw": True}),
    ],
)
def test_ollama_stops_at_its_context(post, path, fields):
    for requested, least in (
        ({}, CONTEXT),
        ({"num_ctx": 40}, 40),
        ({"num_ctx": 2 * CONTEXT}, CONTEXT),
    ):
        options = {"num_predict": MORE, **requested}
        answer = post(path, stream=False, options=options, **fields).json()
        assert answer["done_reason"] == "length", answer
        assert answer["prompt_eval_count"] + answer["eval_count"] == least
    short = post(path, stream=False, options={"num_predict": 5}, **fields).json()
    assert short["eval_count"] == 5
    for wrong in ("many", -0.5):
        refused = post(path, stream=False, options={"num_predict": wrong}, **fields)
        assert refused.status_code == 400
