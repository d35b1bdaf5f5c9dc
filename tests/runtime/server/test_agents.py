"""What agents and their libraries send, as it was recorded (agents.jsonl), with texts replaced."""

from __future__ import annotations

import json
from pathlib import Path

import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from ..live_server import live
from .asking import client_of
from .socket_client import SocketClient
from .sse import events
from .talking import TEMPLATE

EVENT = TypeAdapter(ResponseStreamEvent)
ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("agents.jsonl").read_text("utf-8").splitlines()
]
BODIES = {row["name"]: row["body"] for row in ROWS}
RESPONSES = "/v1/responses"


def call(name, **arguments):
    """The text by which the model calls a tool."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@pytest.fixture
def serve(make):
    """A client of a server whose model says a text."""

    def build(text="So.", **options):
        model = make(text, **{"template": TEMPLATE, "context": 20_000, "pages": 4096, **options})
        core_of(model).script.accept = lambda params, token: False
        return client_of(create_app(MLCEngine.of(model))), model

    return build


def prompt(model):
    return model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)


def post(client, name, path=RESPONSES, **changes):
    answer = client.post(path, json={**BODIES[name], "model": "small", **changes})
    assert answer.status_code == 200, answer.text
    return answer


def ignored(answer):
    return answer.headers.get("x-wherry-ignored", "").split(", ")


def test_every_request_is_answered(serve):
    client, _ = serve()
    for row in ROWS:
        if row["method"] == "SOCKET":
            continue
        body = row["body"] and {**row["body"], "model": "small"}
        if body and row["path"].startswith(RESPONSES):
            body.pop("previous_response_id", None)
            if isinstance(body["input"], list):
                body["input"] = [i for i in body["input"] if "name" in i or "output" not in i]
            body["input"] = body["input"] or "text"
        if body and body.get("max_tokens", 0) > 100:
            body["max_tokens"] = 100
        answer = client.request(row["method"], row["path"], json=body)
        assert answer.status_code == 200, (row["name"], answer.text)


def test_codex_calls_a_tool_of_a_namespace(serve):
    client, model = serve(call("mcp__demo__add", a=2, b=3))
    answer = post(client, "codex-mcp-responses-1")
    assert "tools.web_search" in ignored(answer)
    assert "include.reasoning.encrypted_content" in ignored(answer)
    stream = [data for _, data in events(answer.text)]
    for event in stream:
        EVENT.validate_python(event)
    (item,) = stream[-1]["response"]["output"]
    assert item["type"] == "function_call"
    assert (item["namespace"], item["name"]) == ("mcp__demo", "add")
    assert json.loads(item["arguments"]) == {"a": 2, "b": 3}
    added = next(e["item"] for e in stream if e["type"] == "response.output_item.added")
    assert added["namespace"] == "mcp__demo"
    shown = prompt(model)
    assert '"name": "multi_agent_v1__close_agent"' in shown and '"mcp__demo__add"' in shown
    post(client, "codex-mcp-responses-2")
    assert '<tool_call>{"name": "mcp__demo__add", "arguments"' in prompt(model)


def test_codex_defaults_call_a_function(serve):
    client, model = serve(call("exec_command", cmd="ls"))
    answer = post(client, "codex-responses-1")
    (item,) = events(answer.text)[-1][1]["response"]["output"]
    assert item["name"] == "exec_command" and "namespace" not in item
    post(client, "codex-responses-2")
    assert prompt(model).endswith("<|tool|>text<|assistant|>")


def test_codex_custom_tool(serve):
    client, model = serve(call("apply_patch", input='a "b"\n\té'))
    answer = post(client, "codex-freeform-responses-1")
    stream = [data for _, data in events(answer.text)]
    for event in stream:
        EVENT.validate_python(event)
    (item,) = stream[-1]["response"]["output"]
    assert (item["type"], item["name"], item["input"]) == (
        "custom_tool_call",
        "apply_patch",
        'a "b"\n\té',
    )
    deltas = [e for e in stream if e["type"] == "response.custom_tool_call_input.delta"]
    done = [e for e in stream if e["type"] == "response.custom_tool_call_input.done"]
    assert "".join(e["delta"] for e in deltas) == done[0]["input"] == item["input"]
    assert core_of(model).added[-1][1].grammar is not None
    post(client, "codex-freeform-responses-2")
    assert '<tool_call>{"name": "apply_patch", "arguments": {"input": "text"}}' in prompt(model)
    assert prompt(model).endswith("<|tool|>text<|assistant|>")


def test_codex_searches_for_tools(serve):
    client, model = serve(call("tool_search", query="add"))
    answer = post(client, "codex-freeform-responses-1")
    stream = [data for _, data in events(answer.text)]
    (item,) = stream[-1]["response"]["output"]
    assert (item["type"], item["execution"]) == ("tool_search_call", "client")
    assert item["arguments"] == {"query": "add"}
    assert not [e for e in stream if "delta" in e["type"]]
    tools = [t for t in BODIES["codex-mcp-responses-1"]["tools"] if t.get("name") == "mcp__demo"]
    output = {"type": "tool_search_output", "execution": "client", "status": "completed"}
    output |= {"call_id": item["call_id"], "tools": tools}
    sent = [*BODIES["codex-freeform-responses-1"]["input"], item, output]
    post(client, "codex-freeform-responses-1", input=sent)
    assert "Tools that can be called now: mcp__demo__add" in prompt(model)
    assert '"name": "mcp__demo__add"' in prompt(model).split("<|system|>")[0]


def test_codex_lite_has_its_tools_in_the_input(serve):
    client, model = serve(call("exec", input="ls"))
    answer = post(client, "codex-lite-responses-1")
    (item,) = events(answer.text)[-1][1]["response"]["output"]
    assert (item["type"], item["namespace"], item["name"]) == (
        "custom_tool_call",
        "functions",
        "exec",
    )
    result = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "one"}
    again = [*BODIES["codex-lite-responses-1"]["input"], item, result]
    post(client, "codex-lite-responses-1", input=again)
    assert prompt(model).endswith('{"input": "ls"}}</tool_call><|tool|>one<|assistant|>')


def test_items_of_openais_servers(serve):
    client, model = serve()
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    shell = {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "call_1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
    result = {"type": "local_shell_call_output", "id": "call_1", "output": "one"}
    answer = client.post(RESPONSES, json={"input": [search, shell, result]})
    assert ignored(answer) == ["input.web_search_call"]
    assert '{"name": "local_shell", "arguments": ' in prompt(model)
    assert prompt(model).endswith("<|tool|>one<|assistant|>")
    refused = client.post("/v1/conversations", json={"items": [search]})
    assert refused.status_code == 400


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tools": [{"type": "web_search"}]}, "'web_search', which OpenAI runs on its own"),
        ({"tools": [{"type": "web_search_preview"}]}, "OpenAI runs on its own servers"),
        ({"tools": [{"type": "local_shell"}]}, "whose form only OpenAI's models know"),
        ({"tools": [{"type": "newer"}]}, "type 'newer'; accepted are"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice asks for 'web_search'"),
        (
            {"tool_choice": {"type": "allowed_tools", "tools": [{"type": "mcp"}]}},
            "tool_choice.tools asks for 'mcp'",
        ),
    ],
)
def test_tools_that_nobody_runs_here(serve, fields, says):
    client, _ = serve()
    sent = {"input": "x", "tools": BODIES["codex-responses-1"]["tools"], **fields}
    answer = client.post(RESPONSES, json=sent)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "unsupported_tool"
    assert says in answer.json()["error"]["message"]
    if fields.get("tools") == [{"type": "web_search"}]:
        assert client.post(RESPONSES, json={**sent, "tool_choice": "none"}).status_code == 200


def test_codex_prewarms_a_websocket(make):
    model = make(call("exec_command", cmd="ls"), template=TEMPLATE, context=20_000)
    with live(model) as url, SocketClient(url) as client:
        sent = {name: BODIES[f"codex-websocket-{i}"] for i, name in ((1, "warm"), (2, "turn"))}
        client.send(**{**sent["warm"], "model": "small"})
        turn = client.turn()
        assert [e["type"] for e in turn] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        assert "tools.web_search" in turn[0]["headers"]["X-Wherry-Ignored"]
        warm = turn[-1]["response"]
        assert warm["output"] == [] and warm["usage"]["output_tokens"] == 0
        more = {"model": "small", "previous_response_id": warm["id"]}
        first = client.ask(**{**sent["turn"], **more})
        (item,) = first["output"]
        assert prompt(model).count("<|system|>text") == 2
        result = {"type": "function_call_output", "call_id": item["call_id"], "output": "one"}
        last = {**BODIES["codex-websocket-3"], "input": [result]}
        client.ask(**{**last, "model": "small", "previous_response_id": first["id"]})
        assert prompt(model).endswith("<|tool|>one<|assistant|>")


def test_a_template_that_refuses_the_instructions_alone(serve):
    needs = "{% if messages|length < 2 %}{{ raise_exception('no user') }}{% endif %}"
    client, _ = serve(template=needs + TEMPLATE)
    answer = client.post(RESPONSES, json={"input": "x", "generate": False})
    assert answer.json()["status"] == "completed" and answer.json()["output"] == []
    assert client.post(RESPONSES, json={"input": "x"}).status_code == 400


def test_copilot_custom_tool_in_chat(make):
    patch = "*** Begin Patch\n"
    model = make(call("apply_patch", input=patch), template=TEMPLATE, context=20_000)
    core_of(model).script.accept = lambda params, token: False
    body = {**BODIES["copilot-gpt5-chat-1"], "model": "small", "max_tokens": 900}
    again = {**BODIES["copilot-gpt5-chat-2"], "model": "small", "max_tokens": 900}
    for sent in (body, again):
        sent.pop("stream")
        sent.pop("stream_options")
    with (
        live(model) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        answer = client.chat.completions.create(**body)
        (custom_call,) = answer.choices[0].message.tool_calls
        assert (custom_call.type, custom_call.custom.name, custom_call.custom.input) == (
            "custom",
            "apply_patch",
            patch,
        )
        assert answer.choices[0].finish_reason == "tool_calls"
        pieces = []
        for chunk in client.chat.completions.create(**body, stream=True):
            pieces += [c for choice in chunk.choices for c in choice.delta.tool_calls or ()]
        assert pieces[0].type == "custom" and pieces[0].custom["name"] == "apply_patch"
        assert "".join(p.custom["input"] for p in pieces) == patch
        client.chat.completions.create(**again)
    assert '"arguments": {"input": "text"}}</tool_call><|tool|>text' in prompt(model)
