"""Ollama's API: shapes, streams, options, errors."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.request
from datetime import datetime

import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.core.host_abi import open_host

from ..conftest import TEMPLATE, core_of
from ..live_server import live
from .small_catalog import MB, Loads, catalog
from .test_openapi import document_of, holds, validator

TEXT = "Hello, wörld 🎉!"
HI = [{"role": "user", "content": "the cat"}]
TIMES = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


@pytest.fixture
def model(make):
    return make(TEXT)


def client_of(model, **options):
    app = create_app(MLCEngine.of(model), **options)
    return AnyClient(app, base_url="http://localhost", raise_server_exceptions=False)


@pytest.fixture
def client(model):
    return client_of(model)


@pytest.fixture
def answered(client, model):
    """POSTs, and gives the answer with the prompt and parameters that the core was given."""

    def post(path="/api/chat", **fields):
        body = {"model": "small", "stream": False, **fields}
        if path == "/api/chat":
            body.setdefault("messages", HI)
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        prompt, params = core_of(model).added[-1]
        answer.prompt, answer.params = model.tokenizer.decode(prompt), params
        return answer

    return post


def lines(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text.splitlines()]


def error(answer, status, said):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert said in answer.json()["error"]


def check_end(last, prompt, output):
    assert last["done"] is True and last["done_reason"] == "stop"
    assert (last["prompt_eval_count"], last["eval_count"]) == (prompt, output)
    assert all(type(last[name]) is int and last[name] >= 0 for name in TIMES)
    assert last["total_duration"] >= last["load_duration"] > 0


def test_chat(answered, model):
    answer = answered(model="small:latest").json()
    count = len(model.tokenizer.encode(TEXT)) + 1
    assert answer["message"] == {"role": "assistant", "content": TEXT}
    assert answer["model"] == "small:latest"
    assert datetime.fromisoformat(answer["created_at"].replace("Z", "+00:00")).tzinfo
    check_end(answer, len(core_of(model).added[0][0]), count)
    assert set(answer) == {"model", "created_at", "message", "done", "done_reason", *TIMES} | {
        "prompt_eval_count",
        "eval_count",
    }


def test_chat_streams_by_default(client, model):
    stream = lines(client.post("/api/chat", json={"model": "small", "messages": HI}))
    assert "".join(m["message"]["content"] for m in stream) == TEXT
    assert all(m["done"] is False and "done_reason" not in m for m in stream[:-1])
    assert all(m["message"]["content"] for m in stream[:-1])
    assert stream[-1]["message"] == {"role": "assistant", "content": ""}
    check_end(stream[-1], len(core_of(model).added[0][0]), len(model.tokenizer.encode(TEXT)) + 1)


def test_generate(client, answered, model):
    answer = answered("/api/generate", prompt="the cat", system="Be kind.")
    assert answer.json()["response"] == TEXT
    assert answer.prompt == "<|system|>Be kind.the cat"  # and tokens that are no text
    stream = lines(client.post("/api/generate", json={"model": "small", "prompt": "the cat"}))
    assert "".join(m["response"] for m in stream) == TEXT
    assert stream[-1]["done_reason"] == "stop"
    assert answered("/api/generate", prompt="Once upon", raw=True).prompt == "Once upon"


def test_generate_without_a_template(make):
    model = make(TEXT, template=None)
    client = client_of(model)
    body = {"model": "small", "prompt": "Once upon", "stream": False}
    assert client.post("/api/generate", json=body).json()["response"] == TEXT
    assert model.tokenizer.decode(core_of(model).added[0][0]) == "Once upon"
    error(client.post("/api/generate", json=body | {"system": "x"}), 400, "no chat template")
    error(client.post("/api/chat", json={"messages": HI}), 400, "no chat template")


def test_options(answered):
    params = answered(
        options={
            "num_predict": 3,
            "temperature": 0.5,
            "top_k": 7,
            "top_p": 0.9,
            "min_p": 0.1,
            "typical_p": 0.8,
            "repeat_penalty": 1.2,
            "presence_penalty": 0.3,
            "frequency_penalty": 0.4,
            "seed": 5,
            "stop": ["END"],
            "mirostat": 2,
            "mirostat_tau": 3.0,
            "dry_multiplier": 0.7,
        }
    ).params
    assert (params.max_tokens, params.temperature, params.top_k, params.top_p) == (3, 0.5, 7, 0.9)
    assert (params.min_p, params.typical_p, params.repetition_penalty) == (0.1, 0.8, 1.2)
    assert (params.presence_penalty, params.frequency_penalty, params.seed) == (0.3, 0.4, 5)
    assert (params.mirostat_tau, params.dry_multiplier) == (3.0, 0.7)


def test_options_that_mean_no_limit(answered):
    params = answered(options={"num_predict": -1, "seed": -1, "repeat_last_n": 0}).params
    assert params.max_tokens > 100 and params.repetition_penalty == 1.0
    assert params.seed != answered(options={"seed": -1}).params.seed
    assert answered(options={"num_predict": 0}).params.max_tokens > 100


def test_stop_and_length(answered):
    short = answered(options={"num_predict": 2}).json()
    assert (short["done_reason"], short["eval_count"]) == ("length", 2)
    stopped = answered(options={"stop": "wör"}).json()
    assert (stopped["done_reason"], stopped["message"]["content"]) == ("stop", "Hello, ")


def test_num_ctx_bounds_prompt_and_output(answered, client):
    prompt = answered().json()["prompt_eval_count"]
    answer = answered(options={"num_ctx": prompt + 4})
    assert (answer.json()["eval_count"], answer.json()["done_reason"]) == (4, "length")
    assert "x-wherry-ignored" not in answer.headers
    larger = answered(options={"num_ctx": 100_000})
    assert larger.headers["x-wherry-ignored"] == "options.num_ctx"
    ask = {"messages": HI, "stream": False}
    for size, said in ((prompt, "exceeded max context length by 1 tokens"), ("4k", "'4k'")):
        error(client.post("/api/chat", json=ask | {"options": {"num_ctx": size}}), 400, said)


def test_what_has_no_effect_is_named(answered):
    options = {"num_gpu": 1, "use_mmap": True, "num_thread": None, "repeat_last_n": 64}
    answer = answered(options=options, truncate=True, nonsense=1)
    assert answer.headers["x-wherry-ignored"] == (
        "nonsense, options.num_gpu, options.repeat_last_n, options.use_mmap"
    )
    assert "x-wherry-ignored" not in answered(options={"repeat_last_n": -1}).headers


@pytest.mark.parametrize(
    ("path", "fields", "said"),
    [
        ("/api/chat", {"messages": [HI[0] | {"images": ["aGk="]}]}, "images[0] is not supported"),
        ("/api/generate", {"prompt": "a", "images": ["aGk="]}, "images[0] is not supported"),
        ("/api/generate", {"prompt": "a", "template": "{{ .Prompt }}"}, "template is not"),
        ("/api/generate", {"prompt": "a", "context": [1, 2]}, "context is not supported"),
        ("/api/chat", {"messages": HI, "format": "xml"}, 'it takes "json" or a JSON Schema'),
        ("/api/chat", {"messages": HI, "options": {"temperature": 9}}, "temperature"),
        ("/api/chat", {"messages": HI, "options": {"mirostat": 1}}, "mirostat"),
        ("/api/chat", {"messages": HI, "keep_alive": "soon"}, "a duration is"),
        ("/api/chat", {"messages": HI, "think": "much"}, "think"),
        ("/api/chat", {"messages": [{"role": "cook", "content": "a"}]}, "messages[0].role"),
        ("/api/chat", {"messages": "hi"}, "messages"),
        ("/api/chat", {"messages": HI, "options": {str(i): 1 for i in range(300)}}, "300 options"),
        ("/api/chat", ["model"], "valid dictionary"),
    ],
)
def test_what_is_refused(client, path, fields, said):
    error(client.post(path, json=fields), 400, said)


def test_errors_have_ollamas_shape(client, model):
    error(client.post("/api/chat", json={"model": "other", "messages": HI}), 404, "'other'")
    error(client.post("/api/chat", content="{"), 400, "JSON")
    error(client.get("/api/nothing"), 404, "There is no GET /api/nothing")
    error(client.get("/api/chat"), 405, "use POST")
    error(client_of(model, api_key="k").get("/api/tags"), 401, "API key")
    assert set(client.get("/v1/nothing").json()["error"]) == {"message", "type", "param", "code"}


def test_an_error_in_a_stream_is_its_last_line(make):
    model = make(None)
    core_of(model).script = lambda prompt, params, n: 300 if n < 3 else _break(model)
    stream = lines(client_of(model).post("/api/chat", json={"messages": HI}))
    assert stream[-1] == {"error": "broken"}
    assert all(not line.get("done") for line in stream)


def _break(model):
    core_of(model).break_with = "broken"
    return 300


class Obedient:
    """A script that any grammar accepts."""

    def __init__(self, script):
        self._script = script

    def __call__(self, prompt, params, n):
        return self._script(prompt, params, n)

    def accept(self, params, token):
        return False


def test_format(make):
    """What a grammar gets is tested elsewhere; here, that it is asked for."""
    model = make("{}")
    core_of(model).script = Obedient(core_of(model).script)
    seen, begin = [], model._begin_grammar
    model._begin_grammar = lambda constraint, *of: seen.append(constraint) or begin(constraint, *of)
    client = client_of(model)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for format_ in ("json", schema, "", None):
        body = {"messages": HI, "stream": False, "format": format_}
        assert client.post("/api/chat", json=body).status_code == 200
    assert len(seen) == 2 and '"a"' in str(seen[1])
    bad = {"type": "object", "propertyNames": {}}
    error(client.post("/api/chat", json={"messages": HI, "format": bad}), 400, "propertyNames")


def test_logprobs(answered, client):
    answer = answered(logprobs=True, top_logprobs=2).json()
    first = answer["logprobs"][0]
    assert set(first) == {"token", "logprob", "bytes", "top_logprobs"}
    assert len(first["top_logprobs"]) == 2 and first["logprob"] == -0.5
    texts = b"".join(bytes(t["bytes"]) for t in answer["logprobs"]).decode()
    assert texts == TEXT
    raw = answered("/api/generate", prompt="a", raw=True, logprobs=True).json()
    assert len(raw["logprobs"]) == len(answer["logprobs"])


def test_models_of_a_server_of_one(client):
    (model,) = client.get("/api/tags").json()["models"]
    assert (model["name"], model["model"]) == ("small:latest", "small:latest")
    (running,) = client.get("/api/ps").json()["models"]
    assert running["context_length"] == 512 and running["expires_at"].startswith("2318")
    assert client.get("/api/version").json()["version"].count(".") == 2
    assert client.head("/").status_code == 200
    for name in ({"model": "small"}, {"name": "small:latest"}):
        shown = client.post("/api/show", json=name).json()
        assert shown["capabilities"] == ["completion"]
    error(client.post("/api/show", json={"model": "other"}), 404, "'other'")


def test_the_one_model_stays(client, model):
    """The engine's owner loaded the model, so a client cannot unload it, and the answer says so."""
    for path, said in (("/api/chat", "message"), ("/api/generate", "response")):
        answer = client.post(path, json={"model": "small"})
        assert answer.json()["done_reason"] == "load" and said in answer.json()
        answer = client.post(path, json={"model": "small", "keep_alive": 0})
        assert answer.json()["done_reason"] == "unload" and answer.json()["done"]
        assert answer.headers["x-wherry-ignored"] == "keep_alive"
    error(client.post("/api/chat", json={"model": "other"}), 404, "'other'")
    assert not core_of(model).closed and core_of(model).added == []


def test_what_is_shown_of_a_model(tmp_path):
    """As Ollama's documents have it, under GGUF's names."""
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    loads = Loads()
    marks = json.loads(open_host().wherry_fill_in_marks())[0]
    with catalog(tmp_path, loads, {"a": {}}) as models:
        write = {
            "tensor-cache.json": {"metadata": {"ParamBytes": 563, "BitsPerParam": 4504 / 1003}},
            "generation_config.json": {"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.1},
            "tokenizer_config.json": {"eos_token": {"content": "</s>"}},
            "tokenizer.json": {"added_tokens": [{"content": m} for m in marks]},
        }
        for name, content in write.items():
            (tmp_path / name).write_text(json.dumps(content))
        (listed,) = models.listed()
        config = listed.manifest.architecture["config"]
        config |= {"num_attention_heads": 4, "hidden_size": 64, "rope_parameters": {}}
        config |= {"rope_theta": 5e5, "partial_rotary_factor": 0.5, "eos_token_id": [2, 7]}
        client = AnyClient(create_app(models), base_url="http://localhost")
        shown = client.post("/api/show", json={"model": "a"}).json()
        info = shown["model_info"]
        assert info["general.architecture"] == "llama"
        assert info["general.parameter_count"] == 1003
        assert info["llama.embedding_length"] == 64
        assert info["llama.attention.head_count"] == 4
        assert info["llama.rope.dimension_count"] == 8
        assert info["llama.rope.freq_base"] == 5e5
        assert info["tokenizer.ggml.eos_token_id"] == 2
        assert shown["details"]["parameter_size"] == "1K"
        lines = dict(line.split(maxsplit=1) for line in shown["parameters"].splitlines())
        expected = {"repeat_penalty": "1.1", "stop": '"</s>"', "temperature": "0.7", "top_k": "20"}
        assert lines == expected
        assert all(f"PARAMETER {n} {v}\n" in shown["modelfile"] for n, v in expected.items())
        assert TEMPLATE in shown["modelfile"] and shown["modelfile"].startswith("FROM a:latest\n")
        assert "insert" in shown["capabilities"]
        greedy = {"do_sample": False, **write["generation_config.json"]}
        (tmp_path / "generation_config.json").write_text(json.dumps(greedy))
        shown = client.post("/api/show", json={"model": "a"}).json()
        assert "temperature" not in shown["parameters"]  # it does not hold
        (tmp_path / "tensor-cache.json").write_text("{}")
        (tmp_path / "tokenizer.json").unlink()
        shown = client.post("/api/show", json={"model": "a"}).json()
        assert "general.parameter_count" not in shown["model_info"]
        assert shown["details"]["parameter_size"] == "" and "insert" not in shown["capabilities"]
        assert loads.begun == []


def test_several_models(tmp_path):
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    loads = Loads()
    with catalog(tmp_path, loads, {"a": {"aliases": ("org/x:q4",)}, "b": {}}) as models:
        client = AnyClient(create_app(models), base_url="http://localhost")

        def loaded():
            return sorted(m["name"] for m in client.get("/api/ps").json()["models"])

        def until(names):
            end = time.monotonic() + 5
            while loaded() != names:
                assert time.monotonic() < end, loaded()
                time.sleep(0.01)

        listed = client.get("/api/tags").json()["models"]
        assert [m["name"] for m in listed] == ["a:latest", "org/x:q4", "b:latest"]
        assert listed[0]["size"] > 0 and len(listed[0]["digest"]) == 64
        assert listed[0]["details"]["family"] == "llama"
        assert listed[0]["details"]["quantization_level"] == "q4f16_1"
        shown = client.post("/api/show", json={"model": "a"}).json()
        assert shown["template"] == TEMPLATE
        assert shown["model_info"]["llama.context_length"] == 512
        assert listed[0]["details"]["context_length"] == 512
        assert loaded() == [] and loads.begun == []
        body = {"model": "org/x:q4", "messages": HI, "stream": False}
        answer = client.post("/api/chat", json=body).json()
        assert (answer["model"], answer["message"]["content"]) == ("org/x:q4", "I am a")
        assert client.post("/api/generate", json={"model": "b"}).json()["done_reason"] == "load"
        until(["a:latest", "b:latest"])
        (b,) = [m for m in client.get("/api/ps").json()["models"] if m["name"] == "b:latest"]
        left = datetime.fromisoformat(b["expires_at"]).timestamp() - time.time()
        assert 280 < left <= 300 and b["size"] == 100 * MB
        assert client.post("/api/chat", json={"model": "a", "keep_alive": 0}).status_code == 200
        until(["b:latest"])
        lines(client.post("/api/chat", json={"model": "b", "messages": HI, "keep_alive": "0"}))
        until([])


def test_a_stream_holds_its_model(tmp_path):
    loads = Loads()
    loads.texts["a"] = None
    loads.cores["a"] = {"step_seconds": 0.01}
    with contextlib.ExitStack() as stack:
        models = stack.enter_context(
            catalog(tmp_path, loads, {"a": {"keep_alive": 0.0}, "b": {}}, free=150 * MB)
        )
        url = stack.enter_context(live(models))
        body = json.dumps({"model": "a", "messages": HI}).encode()
        request = urllib.request.Request(
            f"{url}/api/chat", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as stream:
            first = json.loads(stream.readline())
            assert first["message"]["content"]
            assert loads.loaded() == {"a"}
        # The client has gone: the model is free, and with a keep-alive of 0 it goes.
        end = time.monotonic() + 5
        while loads.loaded():
            assert time.monotonic() < end
            time.sleep(0.01)


TOOLS_TEMPLATE = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}"
    "<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln", "days": 2}}\n</tool_call>'
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALLED = {"name": "weather", "arguments": {"city": "Köln", "days": 2}}


def test_tools(make):
    model = make("Let me see." + CALL, template=TOOLS_TEMPLATE)
    client = client_of(model)
    body = {"model": "small", "messages": HI, "tools": [TOOL]}
    full = client.post("/api/chat", json=body | {"stream": False}).json()
    (call,) = full["message"]["tool_calls"]
    assert call["function"] == CALLED and call["id"]
    assert full["message"]["content"].strip() == "Let me see."
    assert full["done_reason"] == "stop"
    stream = lines(client.post("/api/chat", json=body))
    calls = [c for m in stream for c in m["message"].get("tool_calls", ())]
    assert [c["function"] for c in calls] == [CALLED]  # told once, whole
    assert "tool_calls" not in stream[-1]["message"]
    assert "<tool_call>" not in "".join(m["message"]["content"] for m in stream)
    assert '"name": "weather"' in model.tokenizer.decode(core_of(model).added[0][0])


def test_a_call_that_is_cut_is_not_sent(make):
    client = client_of(make(CALL, template=TOOLS_TEMPLATE))
    options = {"num_predict": len(CALL) - 25}
    body = {"messages": HI, "tools": [TOOL], "options": options, "stream": False}
    answer = client.post("/api/chat", json=body).json()
    assert answer["done_reason"] == "length" and "tool_calls" not in answer["message"]


def test_calls_and_thoughts_of_earlier_turns_reach_the_template(make):
    model = make("Sunny.", template=TOOLS_TEMPLATE)
    messages = [
        *HI,
        {"role": "assistant", "thinking": "hm", "tool_calls": [{"function": CALLED}]},
        {"role": "tool", "tool_name": "weather", "content": "sun"},
    ]
    answer = client_of(model).post(
        "/api/chat", json={"messages": messages, "tools": [TOOL], "stream": False}
    )
    assert answer.json()["message"]["content"] == "Sunny."
    prompt = model.tokenizer.decode(core_of(model).added[0][0])
    assert "<think>hm</think>" in prompt and '"city": "K' in prompt and "sun" in prompt


def test_thinking(make):
    model = make("<think>It has eight.</think>\n\nEight.", template=TOOLS_TEMPLATE)
    client = client_of(model)
    body = {"model": "small", "messages": HI}
    full = client.post("/api/chat", json=body | {"stream": False, "think": True})
    assert full.json()["message"]["thinking"].strip() == "It has eight."
    assert full.json()["message"]["content"].strip() == "Eight."
    assert "x-wherry-ignored" not in full.headers
    stream = lines(client.post("/api/chat", json=body))
    assert "".join(m["message"].get("thinking", "") for m in stream).strip() == "It has eight."
    generate = {"prompt": "the cat", "stream": False}
    answer = client.post("/api/generate", json=generate).json()
    assert (answer["thinking"].strip(), answer["response"].strip()) == ("It has eight.", "Eight.")
    client.post("/api/chat", json=body | {"think": False, "stream": False})
    assert model.tokenizer.decode(core_of(model).added[-1][0]).endswith("<think>\n\n</think>\n\n")


def test_a_last_message_of_the_assistant_goes_on(answered):
    answer = answered(messages=[*HI, {"role": "assistant", "content": "Once upon"}])
    assert answer.prompt.endswith("Once upon")
    assert answer.json()["message"]["content"] == TEXT


def test_a_model_that_does_not_think(answered):
    assert answered(think=True).headers["x-wherry-ignored"] == "think"
    assert "x-wherry-ignored" not in answered(think=False).headers


def test_abilities_are_those_of_the_template(tmp_path):
    (tmp_path / "chat_template.jinja").write_text(TOOLS_TEMPLATE)
    with catalog(tmp_path, Loads(), {"a": {}}) as models:
        client = AnyClient(create_app(models), base_url="http://localhost")
        shown = client.post("/api/show", json={"model": "a"}).json()
    assert shown["capabilities"] == ["completion", "thinking", "tools"]


def test_suffix(make, answered, client):
    """The way to fill a gap is tested with completions; here, that it is asked for."""
    body = {"prompt": "the", "suffix": "sat", "stream": False}
    error(client.post("/api/generate", json=body), 400, "suffix is not supported by this model")
    assert answered("/api/generate", prompt="the cat", suffix="").json()["response"] == TEXT


def test_answers_are_as_the_document_says(client):
    document = document_of(client)
    for path in ("/api/version", "/api/tags", "/api/ps"):
        holds(document, path, "get", client.get(path))
    ask = {"messages": HI, "prompt": "a", "input": "a"}
    for path in ("/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show"):
        for body in (ask | {"stream": False}, {"stream": False}, {"model": "x"}, {"model": 3}):
            holds(document, path, "post", client.post(path, json=body))
    holds(document, "/api/pull", "post", client.post("/api/pull", json={"model": "a/b"}))
    chunk = document["paths"]["/api/chat"]["post"]["responses"]["200"]["content"]
    schema = chunk["application/x-ndjson"]["schema"]["contentSchema"]
    for line in lines(client.post("/api/chat", json={"messages": HI})):
        validator(document, schema).validate(line)
