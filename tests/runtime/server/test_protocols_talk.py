"""Tools and thinking through Anthropic's protocol and OpenAI's Responses, with a whole template."""

from __future__ import annotations

import json

import openai
import pytest
from fastapi.testclient import TestClient as AnyClient
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from ..live_server import live
from .sse import events
from .talking import CALLS, CITIES, TEMPLATE, THOUGHT, WEATHER
from .test_anthropic_reply import collected

EVENT = TypeAdapter(ResponseStreamEvent)
HI = [{"role": "user", "content": "weather?"}]
TOOL = {"name": "weather", "description": "d", "input_schema": WEATHER}
FUNCTION = {"type": "function", "name": "weather", "description": "d", "parameters": WEATHER}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


@pytest.fixture
def model(make):
    return make(THOUGHT + "Let me see." + CALLS, template=TEMPLATE, context=8192)


@pytest.fixture
def client(model):
    app = create_app(MLCEngine.of(model))
    return AnyClient(app, base_url="http://localhost", raise_server_exceptions=False)


def ask(client, **fields):
    sent = {"messages": HI, "max_tokens": 2000, "tools": [TOOL], **fields}
    answer = client.post("/v1/messages", json=sent)
    assert answer.status_code == 200, answer.text
    return answer


def prompt(model):
    return model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)


def without_ids(message):
    blocks = [{n: v for n, v in b.items() if n != "id"} for b in message["content"]]
    return {**message, "id": "", "content": blocks}


def test_thinking_text_and_calls_are_blocks(client, model):
    answer = ask(client, **THINKS).json()
    assert [b["type"] for b in answer["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    thinking, text, *calls = answer["content"]
    assert thinking["thinking"].strip() == "hm" and thinking["signature"]
    assert text["text"].strip() == "Let me see."
    assert [c["input"] for c in calls] == CITIES
    assert len({c["id"] for c in calls}) == 2
    assert answer["stop_reason"] == "tool_use"
    assert 0 < answer["usage"]["output_tokens_details"]["thinking_tokens"]
    assert '"name": "weather"' in prompt(model)


def test_a_stream_of_them_is_the_same(client):
    full = ask(client, **THINKS).json()
    streamed = collected([data for _, data in events(ask(client, stream=True, **THINKS).text)])
    assert without_ids(streamed) == without_ids(full)


def test_nobody_gets_thinking_who_did_not_ask(client, model):
    for fields in ({}, {"thinking": {"type": "disabled"}}):
        answer = ask(client, **fields).json()
        assert answer["content"][0]["type"] == "text"
        assert prompt(model).endswith("<|assistant|><think></think>")


def test_an_answer_comes_back_with_results(client, model):
    content = ask(client, **THINKS).json()["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "sunny"}
        for block in content
        if block["type"] == "tool_use"
    ]
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    ask(client, messages=[*HI, *turns], **THINKS)
    said = prompt(model).split("<|user|>weather?")[1]
    assert said.count("<think>") == 1 and said.count("<tool_call>") == 2
    assert '{"city": "Köln"}' in said and said.count("<|tool|>sunny") == 2


@pytest.mark.parametrize(
    ("choice", "constrained", "offered"),
    [
        ({"type": "auto"}, False, True),
        ({"type": "any"}, True, True),
        ({"type": "tool", "name": "weather"}, True, True),
        ({"type": "none"}, False, False),
    ],
)
def test_tool_choice(client, model, choice, constrained, offered):
    client.post(
        "/v1/messages",
        json={"messages": HI, "max_tokens": 9, "tools": [TOOL], "tool_choice": choice},
    )
    assert (core_of(model).added[-1][1].grammar is not None) == constrained
    assert ("weather" in prompt(model).split("<|user|>")[0]) == offered


def test_one_call_at_most(client):
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    content = ask(client, tool_choice=choice).json()["content"]
    assert [b["input"] for b in content if b["type"] == "tool_use"] == CITIES[:1]


def test_a_strict_tool_holds_the_model(client, model):
    client.post(
        "/v1/messages", json={"messages": HI, "max_tokens": 9, "tools": [{**TOOL, "strict": True}]}
    )
    assert core_of(model).added[-1][1].grammar is not None


def test_a_call_that_is_cut_off(make):
    model = make(CALLS[:50], template=TEMPLATE, context=8192)
    app = create_app(MLCEngine.of(model))
    client = AnyClient(app, base_url="http://localhost", raise_server_exceptions=False)
    for stream in (False, True):
        answer = ask(client, max_tokens=45, stream=stream)
        message = answer.json() if not stream else events(answer.text)[-2][1]["delta"]
        assert message["stop_reason"] == "max_tokens"


@pytest.fixture
def openai_client(model):
    with live(model) as url:
        yield openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)


def kinds(items):
    return [item.type for item in items]


def test_items_of_a_response(openai_client, model):
    answer = openai_client.responses.create(model="small", input="weather?", tools=[FUNCTION])
    Response.model_validate(answer.to_dict())
    assert kinds(answer.output) == ["reasoning", "message", "function_call", "function_call"]
    assert answer.output[0].content[0].text.strip() == "hm"
    assert [json.loads(c.arguments) for c in answer.output[2:]] == CITIES
    assert answer.usage.output_tokens_details.reasoning_tokens > 0
    results = [
        {"type": "function_call_output", "call_id": c.call_id, "output": "sunny"}
        for c in answer.output[2:]
    ]
    openai_client.responses.create(
        model="small", input=results, tools=[FUNCTION], previous_response_id=answer.id
    )
    kept = prompt(model)
    sent = [{"role": "user", "content": "weather?"}, *answer.to_dict()["output"], *results]
    openai_client.responses.create(model="small", input=sent, tools=[FUNCTION], store=False)
    assert prompt(model) == kept  # in either place the conversation is stored
    assert kept.count("<|tool|>sunny") == 2 and kept.split("<|user|>")[1].count("<think>") == 1


def test_a_stream_of_items(openai_client):
    stream = list(
        openai_client.responses.create(
            model="small", input="weather?", tools=[FUNCTION], stream=True
        )
    )
    for event in stream:
        EVENT.validate_python(event.to_dict())
    output = stream[-1].response.output
    assert kinds(output) == ["reasoning", "message", "function_call", "function_call"]
    arguments = [e for e in stream if e.type == "response.function_call_arguments.delta"]
    for index in (2, 3):
        text = "".join(e.delta for e in arguments if e.output_index == index)
        assert text == output[index].arguments


@pytest.mark.parametrize(
    ("choice", "constrained"),
    [
        ("required", True),
        ({"type": "function", "name": "weather"}, True),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "weather"}],
            },
            True,
        ),
        ("auto", False),
        ("none", False),
    ],
)
def test_tool_choice_of_responses(client, model, choice, constrained):
    sent = {"input": "weather?", "tools": [FUNCTION], "tool_choice": choice, "store": False}
    client.post("/v1/responses", json={**sent, "max_output_tokens": 9})
    assert (core_of(model).added[-1][1].grammar is not None) == constrained
