"""Anthropic's protocol over HTTP."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from .sse import events

TEXT = "Hello, wörld 🎉!"
HI = [{"role": "user", "content": "the cat"}]
# What a model's template is given, as JSON.
SHOWING = "{{ messages | tojson }}|{{ tools | tojson }}"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


def client_of(model, **options):
    app = create_app(MLCEngine.of(model), **options)
    return AnyClient(app, base_url="http://localhost", raise_server_exceptions=False)


@pytest.fixture
def model(make):
    return make(TEXT, context=4096)


@pytest.fixture
def client(model):
    return client_of(model)


def ask(client, path="/v1/messages", **fields):
    return client.post(path, json={"messages": HI, "max_tokens": 100, **fields})


def prompt(model):
    return model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)


def refused(answer, status, kind, match=""):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"type", "error", "request_id"} and body["type"] == "error"
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["error"]["type"] == kind
    assert match in body["error"]["message"]


def test_a_message(client, model):
    answer = ask(client, system="a", temperature=0.5, top_k=3, metadata={"user_id": "u"}).json()
    assert answer["content"] == [{"type": "text", "text": TEXT}]
    assert (answer["role"], answer["model"], answer["type"]) == ("assistant", "small", "message")
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("end_turn", None)
    assert prompt(model) == "<|system|>a<|user|>the cat<|assistant|>"
    params = core_of(model).added[-1][1]
    assert (params.temperature, params.top_k, params.max_tokens) == (0.5, 3, 100)
    assert params.user != 0


def test_a_stream(client):
    answer = ask(client, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    stream = events(answer.text)
    assert all(name == data["type"] for name, data in stream)
    names = [name for name, _ in stream]
    assert names[:3] == ["message_start", "ping", "content_block_start"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    text = "".join(d["delta"]["text"] for n, d in stream if n == "content_block_delta")
    assert text == TEXT
    usage = stream[-2][1]["usage"]
    assert usage["output_tokens"] > stream[0][1]["message"]["usage"]["output_tokens"]


def test_blocks_are_texts(client, model):
    cached = {"cache_control": {"type": "ephemeral"}}
    ask(
        client,
        system=[{"type": "text", "text": "a", **cached}, {"type": "text", "text": " cat"}],
        messages=[{"role": "user", "content": [{"type": "text", "text": "the ", **cached}]}],
    )
    assert prompt(model) == "<|system|>a cat<|user|>the <|assistant|>"


def test_stop_sequences(client):
    answer = ask(client, stop_sequences=["x", "wör"]).json()
    assert answer["content"] == [{"type": "text", "text": "Hello, "}]
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "wör")


def test_tools_and_their_results_reach_the_template(make):
    model = make(TEXT, template=SHOWING, context=4096)
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Köln"}}
    blocks = [{"type": "text", "text": "sun"}, {"type": "text", "text": "ny"}]
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": blocks},
        {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
        {"type": "text", "text": "and now?"},
    ]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    messages = [
        *HI,
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Let me"}, use]},
        {"role": "user", "content": results},
    ]
    assert ask(client_of(model), messages=messages).status_code == 200
    rendered = json.loads(prompt(model).split("|")[0])
    assert [m["role"] for m in rendered] == ["user", "assistant", "tool", "tool", "user"]
    assert rendered[1]["content"] == "Let me"
    assert rendered[1]["reasoning_content"] == "hm"
    (call,) = rendered[1]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("t1", "weather")
    arguments = call["function"]["arguments"]
    assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == {"city": "Köln"}
    assert [m.get("tool_call_id") for m in rendered] == [None, None, "t1", "t2", None]
    assert [m["content"] for m in rendered[2:]] == ["sunny", "Error: no", "and now?"]


def test_a_last_turn_of_the_assistant_goes_on(client, model):
    turn = {"role": "assistant", "content": "Once upon"}
    assert ask(client, messages=[*HI, turn]).json()["content"][0]["text"] == TEXT
    assert prompt(model) == "<|user|>the cat<|assistant|>Once upon"


def test_a_continued_turn_keeps_its_first_space(make):
    model = make(" cat", context=4096)
    turn = {"role": "assistant", "content": "the"}
    assert ask(client_of(model), messages=[*HI, turn]).json()["content"][0]["text"] == " cat"


def test_max_tokens_beyond_the_context_end_with_it(make):
    client = client_of(make(None, context=64))
    answer = ask(client, max_tokens=32000).json()
    assert answer["stop_reason"] == "model_context_window_exceeded"
    assert answer["usage"]["input_tokens"] + answer["usage"]["output_tokens"] == 64
    assert ask(client, max_tokens=5).json()["stop_reason"] == "max_tokens"
    refused(
        ask(client, messages=[{"role": "user", "content": "a" * 100}]),
        400,
        "invalid_request_error",
        "prompt is too long: ",
    )


def test_count_tokens(client, model):
    fields = {"system": "a", "messages": HI}
    counted = client.post("/v1/messages/count_tokens", json=fields).json()
    answer = ask(client, **fields).json()
    assert counted == {"input_tokens": answer["usage"]["input_tokens"]}
    assert core_of(model).stats().prefill_tokens == counted["input_tokens"]  # once, not twice


def test_more_than_the_context_can_be_counted_but_not_any_amount(make):
    client = client_of(make(TEXT, context=256))
    message = {"role": "user", "content": "cow" * 1000}
    counted = client.post("/v1/messages/count_tokens", json={"messages": [message]}).json()
    assert counted["input_tokens"] > 1000
    message["content"] = "cow" * 1_000_000
    answer = client.post("/v1/messages/count_tokens", json={"messages": [message]})
    refused(answer, 400, "invalid_request_error", "tokens > 256 maximum")


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "this model reads text"),
        ({"messages": [{"role": "user", "content": [{"no": "type"}]}]}, "type"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}
                        ],
                    }
                ]
            },
            "messages[0].content[0].content[0]",
        ),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "tool", "name": "f"}}, "'f'"),
        ({"mcp_servers": [{"type": "url", "url": "http://x", "name": "x"}]}, "mcp_servers"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"),
        ({"system": [IMAGE]}, "system[0]"),
        ({"thinking": {"type": "loud"}}, "thinking"),
        ({"temperature": 7}, "temperature"),
    ],
)
def test_what_is_refused_is_named(client, fields, match):
    refused(ask(client, **fields), 400, "invalid_request_error", match)


def test_errors_have_its_shape_whatever_fails(client, model, make):
    refused(ask(client, model="other"), 404, "not_found_error", "'small'")
    refused(client.get("/v1/messages"), 405, "invalid_request_error")
    bad = client.post("/v1/messages", content="{", headers={"Content-Type": "application/json"})
    refused(bad, 400, "invalid_request_error", "JSON")
    core_of(model).fail_with = "the device is gone"
    refused(ask(client), 500, "api_error", "the device is gone")
    closed = client_of(make(TEXT), api_key="k")
    refused(ask(closed), 401, "authentication_error")
    assert closed.post(
        "/v1/messages", json={"messages": HI, "max_tokens": 5}, headers={"x-api-key": "k"}
    ).is_success
    small = client_of(make(TEXT), max_body=100)
    refused(ask(small, system="a" * 200), 413, "request_too_large")


def test_an_error_within_a_stream_is_its_last_event(client, model):
    core_of(model).fail_with = "the device is gone"
    name, data = events(ask(client, stream=True).text)[-1]
    assert name == "error" and data["type"] == "error"
    assert data["error"] == {"type": "api_error", "message": "the device is gone"}


def test_its_client_finds_the_name_of_its_request(client):
    version = {"anthropic-version": "2023-06-01"}
    fields = {"messages": HI, "max_tokens": 5}
    answer = client.post("/v1/messages", json=fields, headers=version)
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert "request-id" not in ask(client).headers


def test_what_has_no_effect_is_named(client):
    thinking = {"type": "enabled", "budget_tokens": 2048}
    answer = ask(client, service_tier="auto", thinking=thinking, output_config={"effort": "low"})
    assert answer.headers["x-wherry-ignored"] == (  # this model's template knows of no thinking
        "output_config.effort, service_tier, thinking, thinking.budget_tokens"
    )
    assert "x-wherry-ignored" not in ask(client).headers


def test_models(client):
    header = {"anthropic-version": "2023-06-01"}
    listed = client.get("/v1/models", headers=header).json()
    (model,) = listed["data"]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("small", "small", False)
    assert (model["type"], model["display_name"], model["max_input_tokens"]) == (
        "model",
        "small",
        4096,
    )
    assert client.get("/v1/models/small", headers=header).json() == model
    assert client.get("/v1/models").json()["object"] == "list"


def test_a_schema_holds_the_answer(make):
    model = make('{"a": 1}', context=4096)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    format_fields = {"type": "json_schema", "schema": schema}
    for fields in ({"output_config": {"format": format_fields}}, {"output_format": format_fields}):
        ask(client_of(model), **fields)
        assert core_of(model).added[-1][1].grammar is not None
