"""/tokenize and /detokenize, as vLLM and llama.cpp have them."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.text.tokenizer import Tokenizer

from .. import small_tokenizers
from ..conftest import core_of

TEXT = "the cat sat 日本 🎉"


@pytest.fixture
def model(make):
    return make(context=256)


@pytest.fixture
def client(model):
    app = create_app(MLCEngine.of(model))
    return AnyClient(app, base_url="http://localhost", raise_server_exceptions=False)


def post(client, path, **fields):
    answer = client.post(path, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_text_and_back(client, model):
    answer = post(client, "/tokenize", model="small", prompt=TEXT)
    ids = model.tokenizer.encode(TEXT)
    expected = {"count": len(ids), "max_model_len": 256, "tokens": ids, "token_strs": None}
    assert answer == expected
    assert post(client, "/detokenize", tokens=ids)["prompt"] == TEXT
    assert core_of(model).added == []


def test_special_tokens(client, model):
    model.tokenizer = Tokenizer(small_tokenizers.byte_fallback())
    begin = model.tokenizer.backend.token_to_id("<s>")
    assert post(client, "/tokenize", prompt="the")["tokens"][0] == begin
    without = post(client, "/tokenize", prompt="the", add_special_tokens=False)["tokens"]
    assert begin not in without
    assert post(client, "/tokenize", content="the")["tokens"] == without
    assert post(client, "/tokenize", content="the", add_special=True)["tokens"][0] == begin
    text = post(client, "/detokenize", tokens=[begin, *without])
    assert text["prompt"] == text["content"] == "<s> the"


def test_names_and_pieces(client, model):
    answer = post(client, "/tokenize", prompt="a the", return_token_strs=True)
    assert answer["token_strs"] == ["a", "Ġ", "the"]
    (first, *_, last) = post(client, "/tokenize", content="a日é🎉", with_pieces=True)["tokens"]
    assert first == {"id": model.tokenizer.encode("a")[0], "piece": "a"}
    assert last["piece"] == [0x89]


def test_messages(client, model):
    messages = [{"role": "user", "content": "the"}, {"role": "assistant", "content": "cat"}]

    def text(**fields):
        ids = post(client, "/tokenize", messages=messages, **fields)["tokens"]
        return model.tokenizer.decode(ids, skip_special_tokens=False)

    assert text() == "<|user|>the<|assistant|>cat<|assistant|>"
    assert text(add_generation_prompt=False) == "<|user|>the<|assistant|>cat"
    assert text(continue_final_message=True) == "<|user|>the<|assistant|>cat"


def test_a_chat_goes_on_with_its_last_message(client, model):
    messages = [{"role": "user", "content": "the"}, {"role": "assistant", "content": "cat"}]
    post(client, "/v1/chat/completions", messages=messages, continue_final_message=True)
    prompt = model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)
    assert prompt == "<|user|>the<|assistant|>cat"


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "content": "a"}, "content"),
        ("/tokenize", {"prompt": 3}, "prompt"),
        ("/tokenize", {"prompt": "the " * 100_000}, "prompt"),
        ("/tokenize", {"content": "a", "parse_special": False}, "parse_special"),
        ("/tokenize", {"messages": [], "prompt": None}, "messages"),
        ("/tokenize", {"messages": [{"role": "user"}], "chat_template": "x"}, "chat_template"),
        (
            "/tokenize",
            {"messages": [{"role": "user", "content": "a"}], "continue_final_message": True},
            "continue_final_message",
        ),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [5, -1]}, "tokens"),
        ("/detokenize", {"tokens": [5, 100_000]}, "tokens"),
        ("/detokenize", {"tokens": [5] * (2**18 + 1)}, "tokens"),
        ("/detokenize", {"tokens": "the"}, "tokens"),
    ],
)
def test_what_is_refused_is_named(client, path, fields, param):
    answer = client.post(path, json=fields)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].startswith(param)


def test_another_model(client):
    for path, fields in (("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [5]})):
        assert client.post(path, json={"model": "other", **fields}).status_code == 404
