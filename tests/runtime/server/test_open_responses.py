"""What the specification of Open Responses (2026-04-24) asks for over HTTP."""

from __future__ import annotations

import json

import pytest

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.server.endpoints.responses import compaction
from wherry.runtime.server.endpoints.responses.summary import opened, sealed

from ..conftest import core_of
from .asking import client_of, error
from .sse import events
from .talking import TEMPLATE, THOUGHT

TEXT = "the user likes cats"
RESPONSES, COMPACT = "/v1/responses", "/v1/responses/compact"
REQUIRED = set(
    "id object created_at completed_at status incomplete_details model previous_response_id "
    "instructions output error tools tool_choice truncation parallel_tool_calls text top_p "
    "presence_penalty frequency_penalty top_logprobs temperature reasoning usage "
    "max_output_tokens max_tool_calls store background service_tier metadata safety_identifier "
    "prompt_cache_key".split()
)
USER = {"type": "message", "role": "user", "content": "I like cats"}
SAID = {"type": "message", "role": "assistant", "content": "I see"}
SYSTEM = {"type": "message", "role": "system", "content": "be brief"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "one"}


@pytest.fixture
def model(make):
    model = make(TEXT, template=TEMPLATE, context=8192)
    core_of(model).script.accept = lambda params, token: False  # nothing completes a grammar
    return model


@pytest.fixture
def client(model):
    with client_of(create_app(MLCEngine.of(model))) as client:
        yield client


def ask(client, path=RESPONSES, **fields):
    answer = client.post(path, json={"model": "small", "input": "hi", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def prompt(model):
    return model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)


def test_a_response_has_every_field(client):
    answer = ask(client)
    assert answer.keys() >= REQUIRED
    assert (answer["presence_penalty"], answer["frequency_penalty"]) == (0, 0)
    assert answer["prompt_cache_key"] is None
    answer = ask(client, presence_penalty=0.5, frequency_penalty=-1, prompt_cache_key="k")
    assert (answer["presence_penalty"], answer["frequency_penalty"]) == (0.5, -1)
    assert answer["prompt_cache_key"] == "k"
    for path in (RESPONSES, COMPACT):
        body = {"model": "small", "input": "hi", "prompt_cache_key": "k"}
        ignored = client.post(path, json=body).headers["X-Wherry-Ignored"]
        assert ignored == "prompt_cache_key"


def test_tools_and_formats_are_repeated_in_full(client):
    plain = {"type": "function", "name": "f"}
    strict = {**plain, "name": "g", "strict": True, "parameters": {"type": "object"}}
    answer = ask(client, tools=[plain, strict])
    nothing = {"description": None, "parameters": None, "strict": False}
    assert answer["tools"] == [{**plain, **nothing}, {**nothing, **strict}]
    allowed = {"type": "allowed_tools", "tools": [plain]}
    assert ask(client, tools=[plain], tool_choice=allowed)["tool_choice"]["mode"] == "auto"


def test_every_stream_ends_in_done(client, model):
    for failure in (None, "the device is gone"):
        core_of(model).fail_with = failure
        text = client.post(RESPONSES, json={"input": "hi", "stream": True}).text
        assert text.endswith("\n\ndata: [DONE]\n\n")
        last, _ = events(text)[-1]
        assert last == ("response.failed" if failure else "response.completed")


@pytest.mark.parametrize(
    ("headers", "name"), [({}, "reasoning_text"), ({"OpenResponses-Version": "x"}, "reasoning")]
)
def test_events_of_reasoning(make, headers, name):
    model = make(THOUGHT + TEXT, template=TEMPLATE, context=8192)
    with client_of(create_app(MLCEngine.of(model))) as client:
        text = client.post(RESPONSES, json={"input": "hi", "stream": True}, headers=headers).text
    for end in ("delta", "done"):
        assert f"event: response.{name}.{end}\n" in text


def test_phases_are_kept(client):
    said = [{**SAID, "phase": phase} for phase in ("commentary", "final_answer")]
    answer = ask(client, input=[*said, {**USER, "phase": "commentary"}])
    kept = client.get(f"{RESPONSES}/{answer['id']}/input_items?order=asc").json()["data"]
    assert [item.get("phase") for item in kept] == ["commentary", "final_answer", None]
    refused = client.post(RESPONSES, json={"input": [{**SAID, "phase": "other"}]})
    assert "phase" in error(refused, 400)["message"]


def test_results_belong_to_calls(client):
    problem = error(client.post(RESPONSES, json={"input": [USER, RESULT]}), 400)
    assert (problem["code"], problem["param"]) == ("function_call_not_found", "input")
    error(client.post(RESPONSES, json={"input": [USER, RESULT, CALL]}), 400)
    first = ask(client, input=[USER, CALL])
    ask(client, input=[RESULT], previous_response_id=first["id"])


def test_a_conversation_becomes_a_summary(client, model):
    compacted = ask(client, COMPACT, input=[USER, SAID], instructions="a", prompt_cache_key="k")
    assert compacted["object"] == "response.compaction" and compacted["created_at"] > 0
    assert compacted["usage"]["total_tokens"] > compacted["usage"]["output_tokens"] > 0
    (item,) = compacted["output"]
    assert item["type"] == "compaction" and opened(item["encrypted_content"]) == TEXT
    params = core_of(model).added[-1][1]
    assert prompt(model).startswith("<|system|>a<|user|>I like cats<|assistant|>I see<|user|>Summ")
    assert params.max_tokens == compaction.MAX_SUMMARY and params.temperature == 0
    assert ask(client, input="hi")["id"] != compacted["id"]
    assert client.get(f"{RESPONSES}/{compacted['id']}").status_code == 404


def test_a_summary_stands_for_the_conversation(client, model):
    compacted = ask(client, COMPACT, input=[SYSTEM, USER, SAID])["output"]
    assert [item["type"] for item in compacted] == ["message", "compaction"]
    answer = ask(client, input=[*compacted, {"role": "user", "content": "so?"}])
    stood = f"Summary of our conversation so far:\n\n{TEXT}"
    assert prompt(model) == f"<|system|>be brief<|user|>{stood}\n\nso?<|assistant|>"
    ask(client, input="and?", previous_response_id=answer["id"])
    assert prompt(model).count(TEXT) == 2  # and once said
    again = ask(client, COMPACT, input=None, previous_response_id=answer["id"])["output"]
    assert f"{stood}\n\nso?" in prompt(model) and len(again) == 2
    ask(client, input=again)  # nothing else: templates see a message of a user
    assert prompt(model).endswith(f"<|user|>{stood}<|assistant|>")


def test_calls_without_results_stay(client, model):
    compacted = ask(client, COMPACT, input=[USER, CALL, RESULT, {**CALL, "call_id": "c2"}])[
        "output"
    ]
    assert [item["type"] for item in compacted] == ["compaction", "function_call"]
    ask(client, input=[*compacted, {**RESULT, "call_id": "c2"}])
    assert [m in prompt(model) for m in ("<tool_call>", "<|tool|>one")] == [True, True]


def test_a_summary_ends_before_the_context(make):
    model = make(TEXT, template=TEMPLATE, context=512)
    with client_of(create_app(MLCEngine.of(model))) as client:
        ask(client, COMPACT, input=[USER])
        tokens, params = core_of(model).added[-1]
        assert params.max_tokens == 512 - len(tokens)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"input": None}, "input"),
        ({"input": [SYSTEM]}, "input"),
        ({"input": [{"type": "compaction", "encrypted_content": "gAAAAAB"}]}, "input[0]"),
        ({"input": [{"type": "compaction", "encrypted_content": sealed("a")[:-2]}]}, "input[0]"),
        ({"input": [RESULT]}, "input"),
        ({"stream": True}, "stream"),
        ({"previous_response_id": "resp_other"}, "previous_response_id"),
    ],
)
def test_what_cannot_be_summarized(client, fields, param):
    body = {"model": "small", "input": [USER], **fields}
    body = {name: v for name, v in body.items() if v is not None}
    assert error(client.post(COMPACT, json=body), 400)["param"] == param


def test_no_summary_is_an_error(make):
    with client_of(create_app(MLCEngine.of(make("", context=8192)))) as client:
        problem = error(client.post(COMPACT, json={"model": "small", "input": "hi"}), 400)
        assert problem["code"] == "compaction_failed"


def test_summaries_are_any_text():
    for text in ("", "a\n\nb", "wörld 🎉", "x" * 100_000):
        assert opened(sealed(text)) == text
        assert json.dumps(sealed(text)).isascii()
