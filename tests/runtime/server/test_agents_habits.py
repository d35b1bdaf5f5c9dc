"""What agents rely on besides the shapes: words of errors, bytes during a wait, fields' names."""

from __future__ import annotations

import json
import re
import socket
from urllib.parse import urlsplit

import pytest

from wherry.artifact.head import EmbeddingHead
from wherry.runtime import MLCEngine, create_app
from wherry.runtime.server.models import longest_input
from wherry.runtime.server.wire import streams

from ..conftest import core_of
from ..live_server import live
from .asking import client_of, post
from .socket_client import SocketClient
from .talking import TEMPLATE
from .test_agents import BODIES, prompt

LONG = [{"role": "user", "content": "a" * 100}]
CHAT, MESSAGES, OLLAMA = "/v1/chat/completions", "/v1/messages", "/api/chat"


@pytest.fixture
def serve(make):
    def build(text="So.", **options):
        model = make(text, **options)
        return client_of(create_app(MLCEngine.of(model))), model

    return build


def message(answer):
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    return error if isinstance(error, str) else error["message"]


def test_an_overflow_in_the_words_that_programs_search_for(serve):
    client, _ = serve(context=64)
    text = message(client.post(CHAT, json={"messages": LONG}))
    match = re.fullmatch(
        r"This model's maximum context length is 64 tokens\. However, you requested (\d+) tokens "
        r"\((\d+) in the messages, 1 in the completion\)\. Please reduce the length of the "
        r'messages or completion\. truncation: "auto" drops the oldest turns\. '
        r"\(context_length_exceeded\)",
        text,
    )
    assert match, text
    prompt = int(match[2])
    assert prompt + 1 == int(match[1])
    text = message(client.post("/v1/completions", json={"prompt": "a" * 100, "max_tokens": 9}))
    assert "in the prompt, 9 in the completion)" in text
    text = message(client.post(MESSAGES, json={"messages": LONG, "max_tokens": 5}))
    assert text == f"prompt is too long: {prompt} tokens > 64 maximum"
    text = message(client.post(OLLAMA, json={"messages": LONG}))
    assert text == f"prompt too long; exceeded max context length by {prompt + 1 - 64} tokens"
    options = {"messages": LONG[:1], "options": {"num_ctx": 20}}
    client, _ = serve(context=2048)
    assert "exceeded max context length by" in message(client.post(OLLAMA, json=options))


def test_an_overflow_of_a_text_that_is_not_counted(serve):
    client, _ = serve(context=64)
    far = [{"role": "user", "content": "a" * 200_000}]
    text = message(client.post(CHAT, json={"messages": far}))
    assert text.startswith("This model's maximum context length is 64 tokens. However, you ")
    assert "requested at least" in text and text.endswith("(context_length_exceeded)")
    text = message(client.post(MESSAGES, json={"messages": far, "max_tokens": 5}))
    assert re.fullmatch(r"prompt is too long: \d+ tokens > 64 maximum", text)
    assert re.search(r"by \d+ tokens", message(client.post(OLLAMA, json={"messages": far})))


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        (CHAT, {"messages": LONG}, ": keep-alive\n\n"),
        ("/v1/completions", {"prompt": "a"}, ": keep-alive\n\n"),
        (MESSAGES, {"messages": LONG, "max_tokens": 9}, 'event: ping\ndata: {"type":"ping"}\n\n'),
        ("/v1/responses", {"input": "a"}, 'event: keepalive\ndata: {"type":"keepalive",'),
    ],
)
def test_a_stream_shows_that_it_runs(make, monkeypatch, path, body, shown):
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.02)
    with live(make("So.", step_seconds=0.06, context=1024)) as url:
        status, _, text = post(url, path, {**body, "model": "small", "stream": True})
    assert status == 200 and shown in text
    if path == MESSAGES:
        assert text.count(shown) > 2  # one belongs to every stream
    numbers = [int(n) for n in re.findall(r'"sequence_number":(\d+)', text)]
    assert numbers == list(range(len(numbers)))


def test_so_does_a_websocket(make, monkeypatch):
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.02)
    with live(make("So.", step_seconds=0.06, context=1024)) as url, SocketClient(url) as client:
        client.send(input="a")
        turn = client.turn()
    assert "keepalive" in [e["type"] for e in turn]
    assert [e["sequence_number"] for e in turn] == list(range(len(turn)))
    assert turn[-1]["type"] == "response.completed"


def test_the_version_of_ollamas_api(serve):
    client, _ = serve()
    version = client.get("/api/version").json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 13, 4)


def test_claude_code_searches_for_tools(serve):
    client, model = serve(template=TEMPLATE, context=20_000)
    body = BODIES["claude-code-toolsearch-messages-2"]
    blocks = json.dumps(body["messages"])
    assert '"tool_reference"' in blocks
    assert any("defer_loading" in t for t in body["tools"])
    answer = client.post(MESSAGES, json={**body, "model": "small", "max_tokens": 9})
    assert answer.status_code == 200, answer.text
    name = re.search(r'"tool_name": "([^"]*)"', blocks)[1]
    assert f"The tool {name} can be called now." in prompt(model)


def test_no_chunk_but_the_last_has_usage(serve):
    client, _ = serve()
    for options in ({}, {"stream_options": {"include_usage": True}}):
        body = {"messages": LONG, "stream": True, **options}
        lines = client.post(CHAT, json=body).text.splitlines()
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        with_usage = [c for c in chunks if "usage" in c]
        assert with_usage == (chunks[-1:] if options else [])
        assert all(c["usage"] for c in with_usage)


TURNS = [
    {"role": "user", "content": "a" * 40},
    {"role": "assistant", "content": "b" * 40},
    {"role": "user", "content": "c"},
]


def test_ollama_drops_the_oldest_turns(serve):
    client, model = serve(context=80)
    answer = client.post(OLLAMA, json={"messages": TURNS, "stream": False})
    assert answer.status_code == 200, answer.text
    assert prompt(model) == "<|user|>c<|assistant|>"
    refused = {"messages": TURNS, "truncate": False}
    assert "prompt too long" in message(client.post(OLLAMA, json=refused))
    client, model = serve(context=2048)
    fields = {"messages": TURNS, "stream": False, "options": {"num_ctx": 60}, "truncate": True}
    assert client.post(OLLAMA, json=fields).status_code == 200
    assert prompt(model) == "<|user|>c<|assistant|>"
    one = {"prompt": "a", "truncate": True, "stream": False}
    assert client.post("/api/generate", json=one).headers["X-Wherry-Ignored"] == "truncate"


@pytest.mark.parametrize(
    ("fields", "effect"),
    [
        ({"n_predict": 3}, lambda params: params.max_tokens == 3),
        ({"max_new_tokens": 3}, lambda params: params.max_tokens == 3),
        ({"n_predict": -1}, lambda params: params.max_tokens > 100),
        ({"repeat_penalty": 1.5}, lambda params: params.repetition_penalty == 1.5),
        ({"do_sample": False, "temperature": 1.5}, lambda params: params.temperature == 0),
        ({"do_sample": True, "temperature": 1.5}, lambda params: params.temperature == 1.5),
        ({"stop_token_ids": [7]}, lambda params: params.stop_ids[-1] == 7),
    ],
)
def test_names_of_other_servers(serve, fields, effect):
    client, model = serve(context=200)
    assert client.post(CHAT, json={"messages": TURNS[2:], **fields}).status_code == 200
    assert effect(core_of(model).added[-1][1])


def test_more_names_of_other_servers(serve):
    client, model = serve("So. It is.", template=TEMPLATE, context=2048)
    core_of(model).script.accept = lambda params, token: False
    ask = lambda **fields: client.post(CHAT, json={"messages": TURNS[2:], **fields})  # noqa: E731
    said = lambda answer: answer.json()["choices"][0]["message"]["content"]  # noqa: E731
    assert said(ask(stop_sequences=["It"])) == "So. "
    assert said(ask(stop=["It"], min_tokens=5)) == "So. It is."
    for fields in ({"regex": "a"}, {"ebnf": 'root ::= "a"'}):
        answer = ask(**fields)
        assert core_of(model).added[-1][1].grammar is not None
        assert "X-Wherry-Ignored" not in answer.headers
    both = {"guided_grammar": 'start: "a"', "structured_outputs": {"grammar": 'start: "a"'}}
    assert ask(**both).status_code == 200
    both["guided_grammar"] = 'start: "b"'
    assert ask(**both).json()["error"]["code"] == "invalid_grammar"
    assert ask(max_tokens=3, n_predict=3).status_code == 200
    assert ask(max_tokens=3, n_predict=4).json()["error"]["param"] == "n_predict"
    assert said(ask(stop=["It"], include_stop_str_in_output=True)) == "So. It"
    assert said(ask(stop=["It"], no_stop_trim=True)) == "So. It"
    (cut,) = model.tokenizer.encode(".")
    assert said(ask(stop_token_ids=[cut])) == "So"
    assert said(ask(stop_token_ids=[cut], include_stop_str_in_output=True)) == "So."
    ask(thinking={"type": "disabled"})
    assert prompt(model).endswith("<think></think>")
    assert ask(thinking={"type": "maybe"}).json()["error"]["param"] == "thinking.type"
    ask(chat_template_kwargs={"add_generation_prompt": False})
    assert not prompt(model).endswith("<|assistant|>")


@pytest.mark.parametrize(
    ("name", "value", "harmless"),
    [
        ("chat_template", "x", None),
        ("documents", [{"text": "a"}], []),
        ("system", "x", ""),
        ("truncate_prompt_tokens", 5, None),
        ("no_repeat_ngram_size", 3, 0),
        ("prompt_embeds", "x", None),
        ("lora_path", "x", None),
        ("options", {"num_ctx": 5}, {}),
        ("format", "json", ""),
        ("extra_body", {"a": 1}, {}),
        ("skip_special_tokens", False, True),
    ],
)
def test_fields_that_would_change_the_answer(serve, name, value, harmless):
    client, _ = serve()
    answer = client.post(CHAT, json={"messages": TURNS, name: value})
    assert answer.json()["error"]["code"] == "unsupported_parameter"
    assert answer.json()["error"]["param"] == name
    assert client.post(CHAT, json={"messages": TURNS, name: harmless}).status_code == 200


def test_a_text_that_ends_inside_a_character(make):
    model = make("é" * 9)
    client = client_of(create_app(MLCEngine.of(model)))
    for most in range(1, 9):
        answer = client.post(CHAT, json={"messages": LONG, "max_tokens": most}).json()
        assert set(answer["choices"][0]["message"]["content"]) <= {"é"}


def test_refused_tools_have_a_code(serve):
    client, _ = serve(template=TEMPLATE)
    tools = [{"type": "web_search"}]
    answer = client.post(CHAT, json={"messages": TURNS, "tools": tools})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "unsupported_tool")
    assert error["param"] == "tools[0].type"


def test_a_coded_body_is_named(serve):
    client, _ = serve()
    answer = client.post(CHAT, json={"messages": TURNS}, headers={"Content-Encoding": "gzip"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding 'gzip'" in error["message"]
    headers = {"Content-Encoding": "identity"}
    assert client.post(CHAT, json={"messages": TURNS}, headers=headers).status_code == 200


def test_a_target_may_be_a_full_url(make):
    with live(make("So.")) as url:
        place = urlsplit(url)
        for host, status in ((place.netloc, 200), ("evil.example", 403)):
            with socket.create_connection((place.hostname, place.port), 10) as connection:
                head = f"GET http://{host}/version HTTP/1.1\r\nHost: {place.netloc}\r\n"
                connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
                assert connection.recv(100).startswith(f"HTTP/1.1 {status}".encode())


def test_a_model_that_reads_less_than_its_context():
    assert longest_input(512, EmbeddingHead(max_tokens=256)) == 256
    assert longest_input(512, EmbeddingHead()) == longest_input(512, None) == 512
    assert longest_input(None, EmbeddingHead(max_tokens=256)) is None


def test_parts_of_a_request_without_effect_are_named(serve):
    client, _ = serve(template=TEMPLATE, context=30_000)

    def named(path, body):
        answer = client.post(path, json={**body, "model": "small", "max_tokens": 9})
        assert answer.status_code == 200, answer.text
        return set(answer.headers.get("X-Wherry-Ignored", "").split(", "))

    ignored = named(MESSAGES, BODIES["claude-code-toolsearch-messages-2"])
    assert {"messages.cache_control", "system.cache_control"} <= ignored
    assert not [name for name in ignored if "defer_loading" in name]
    eager = [b for b in BODIES.values() if b and "eager_input_streaming" in json.dumps(b)]
    assert "tools.eager_input_streaming" in named(MESSAGES, eager[0])
    thinks = {"messages": TURNS, "thinking": {"type": "adaptive", "display": "summarized"}}
    assert "thinking.display" in named(MESSAGES, thinks)
    part = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    body = {"messages": [{"role": "user", "content": [part]}]}
    assert named(CHAT, body) == {"messages.content.cache_control"}


def test_documents_are_for_templates_that_read_them(serve):
    reads = "{% for d in documents or [] %}[{{ d.text }}]{% endfor %}"
    client, model = serve(template=reads + TEMPLATE, context=2048)
    body = {"messages": TURNS, "documents": [{"text": "fact"}]}
    assert client.post(CHAT, json=body).status_code == 200
    assert prompt(model).startswith("[fact]")


@pytest.mark.parametrize("allowed", [False, True])
def test_a_custom_tool_that_must_be_called(serve, allowed):
    client, model = serve(template=TEMPLATE, context=8192)
    core_of(model).script.accept = lambda params, token: False
    tools = [t for t in BODIES["copilot-gpt5-chat-1"]["tools"] if t["type"] == "custom"]
    choice = {"type": "custom", "custom": {"name": "apply_patch"}}
    if allowed:
        allowed = {"mode": "required", "tools": [choice]}
        choice = {"type": "allowed_tools", "allowed_tools": allowed}
    body = {"messages": TURNS, "tools": tools, "tool_choice": choice, "max_tokens": 9}
    assert client.post(CHAT, json=body).status_code == 200
    assert core_of(model).added[-1][1].grammar is not None
    choice = {"type": "custom", "custom": {"name": "other"}}
    assert client.post(CHAT, json={**body, "tool_choice": choice}).status_code == 400
