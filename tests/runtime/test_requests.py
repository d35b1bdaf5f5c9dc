"""What a request may hold, and that it is counted before anything is done with it."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from fastapi.testclient import TestClient

from wherry.runtime import MLCEngine, RequestError, create_app
from wherry.runtime.host.request import checked

from .live_server import live


@pytest.mark.parametrize(
    "prompt",
    [
        *(None, 5, {}, [None, None], ["a", 1], [1, "a"], [1, True], [1, 1.5], [1, -1], [1, 2**31]),
        *([[1], 2], [[1], [2, None]]),
    ],
)
def test_what_is_no_prompt(prompt):
    with pytest.raises(RequestError, match=r"prompt: (is missing|takes a text|holds)") as e:
        checked("completion", {"prompt": prompt})
    assert e.value.param == "prompt"


@pytest.mark.parametrize("prompt", ["", "a", [], ["a", ""], [1, 2], [[1], [2, 3]], [[]]])
def test_prompts(prompt):
    assert json.loads(checked("completion", {"prompt": prompt}).json) == {"prompt": prompt}


@pytest.mark.parametrize(
    ("task", "fields", "outputs"),
    [
        ("completion", {"prompt": ["a", "b"], "n": "3"}, 6),
        ("completion", {"prompt": [1, 2], "n": 2.0}, 2),
        ("completion", {"prompt": [[1], [2, 3]]}, 2),
        ("chat", {"messages": [{"role": "user", "content": "a"}], "n": "2"}, 2),
        ("embed", {"input": ["a", "b", "c"]}, 3),
        ("classify", {"input": "a", "n": "many", "stream": True}, 1),  # which it does not have
        ("rerank", {"query": "a", "documents": ["b", "c"]}, 2),
        ("score", {"text_1": "a", "items": ["b", "c"]}, 2),
    ],
)
def test_outputs_are_counted_as_they_are_read(task, fields, outputs):
    assert checked(task, fields).outputs == outputs


@pytest.mark.parametrize("value", ["false", "off", 0, False, "true", 1, True])
def test_stream_is_read_as_other_truths(value):
    assert checked("completion", {"prompt": "a", "stream": value}).stream is (
        value in ("true", 1, True)
    )


MESSAGE = {"role": "user", "content": "a"}
TOO_MANY = [
    ({"messages": [0] * 4097}, "messages: has 4097 items; at most 4096"),
    ({"messages": [{"role": "user", "content": [0] * 4097}]}, "4097 items; at most 4096"),
    ({"messages": [MESSAGE], "logit_bias": {str(i): "x" for i in range(4097)}}, "4097 items"),
    ({"messages": [MESSAGE], "model": "x" * 2000}, "model: "),
    ({"messages": [MESSAGE], **{f"x{i}": 0 for i in range(300)}}, "301 fields"),
    ({"messages": [{"role": "user", "content": [{}] * 4096}] * 4}, "content"),
]


@pytest.mark.parametrize(("fields", "message"), TOO_MANY)
def test_too_many(fields, message):
    with pytest.raises(RequestError, match=message) as e:
        checked("chat", fields)
    assert len(str(e.value)) < 5000


def test_an_error_shows_little_of_a_long_name():
    with pytest.raises(RequestError) as e:
        checked("chat", {"messages": [MESSAGE], "logit_bias": {"x" * 100_000: 1}})
    assert len(str(e.value)) < 1000


HALF = "a\ud800b"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user", "content": HALF}]}, "messages[0].content"),
        ({"messages": [{**MESSAGE, "name": HALF}]}, "messages[0].name"),
        ({"messages": [MESSAGE], "stop": ["x", HALF]}, "stop[1]"),
        ({"messages": [MESSAGE], "metadata": {"a": [HALF]}}, "metadata.a[0]"),
        ({"messages": [{**MESSAGE, HALF: 1}]}, "messages[0]"),
        ({"messages": [MESSAGE], HALF: 1}, None),
    ],
)  # fmt: skip
def test_half_a_surrogate_pair(fields, param, make):
    with pytest.raises(RequestError, match="surrogate") as e:
        checked("chat", fields)
    assert e.value.param == param
    client = TestClient(create_app(MLCEngine.of(make())), base_url="http://localhost")
    json_type = {"Content-Type": "application/json"}
    answer = client.post("/v1/chat/completions", content=json.dumps(fields), headers=json_type)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_half_a_surrogate_pair_in_a_prompt(make):
    engine = MLCEngine.of(make())
    for prompt in (HALF, ["a", HALF]):
        with pytest.raises(RequestError, match="surrogate"):
            engine.completions.create(prompt=prompt)
    with pytest.raises(RequestError, match="surrogate"):
        engine.chat.completions.create(messages=[{"role": "user", "content": HALF}])
    assert engine.completions.create(prompt="🎉", max_tokens=1).usage.prompt_tokens > 1


def refuse_to_encode(model, monkeypatch):
    def encode(*_, **__):
        raise AssertionError("tokenized")

    monkeypatch.setattr(model.tokenizer, "encode", encode)


def test_prompts_are_counted_before_they_are_tokenized(make, monkeypatch):
    model = make()
    client = TestClient(create_app(MLCEngine.of(model), max_queue=4), base_url="http://localhost")
    refuse_to_encode(model, monkeypatch)
    for fields in ({"prompt": ["a"] * 21}, {"prompt": ["a"] * 7, "n": 3}, {"prompt": "a", "n": 21}):
        answer = client.post("/v1/completions", json=fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "n")


def test_a_full_queue_refuses_before_tokenizing(make, monkeypatch):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    client = TestClient(create_app(MLCEngine.of(model), max_queue=0), base_url="http://localhost")
    with MLCEngine.of(model).completions.create(prompt=["a"] * 16, stream=True, max_tokens=10_000):
        refuse_to_encode(model, monkeypatch)
        answer = client.post("/v1/chat/completions", json={"messages": [MESSAGE]})
        assert answer.status_code == 429


async def test_a_client_that_goes_while_its_request_is_prepared_ends_that(make, monkeypatch):
    model = make(context=10**6, pages=10**5)
    tokenizer, seen = model.tokenizer, []
    encode = tokenizer.encode

    def slowly(text, **options):
        seen.append(len(text))
        time.sleep(0.05)
        return encode(text[:10], **options)

    monkeypatch.setattr(tokenizer, "encode", slowly)
    body = json.dumps({"prompt": "a" * 12_000_000, "max_tokens": 1}).encode()
    head = (
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with live(model) as url:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        await writer.drain()
        end = time.monotonic() + 10
        while not seen:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        writer.close()
        await asyncio.sleep(0.5)
        done = len(seen)
        await asyncio.sleep(0.5)
        assert len(seen) == done < 90  # of 92 blocks, some 5 s
    assert model.dispatcher.active == 0


def test_bodies_of_all_requests_have_a_limit(make):
    """Half a body each, held by as many connections as it takes."""
    with live(make(), max_body=100_000) as url:
        host, port = url.removeprefix("http://").split(":")
        connections = []

        async def attack():
            answers = []
            for _ in range(12):
                reader, writer = await asyncio.open_connection(host, int(port))
                connections.append(writer)
                writer.write(
                    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 90001\r\n\r\n"
                    + b" "
                    * 90_000
                )
                await writer.drain()
                answers.append(reader)
            await asyncio.sleep(0.3)
            refused = 0
            for reader in answers:
                try:
                    head = await asyncio.wait_for(reader.read(1000), 0.1)
                    refused += b"429 Too Many Requests" in head
                except TimeoutError:
                    pass
            for writer in connections:
                writer.close()
            return refused

        assert asyncio.run(attack()) == 4  # 8 times 100,000 bytes are held
        time.sleep(0.2)
        with TestClient(create_app(MLCEngine.of(make())), base_url="http://localhost") as client:
            assert client.post("/v1/completions", json={"prompt": "a"}).status_code == 200


def test_problems_of_a_request_are_sentences():
    """One as it is, several under a heading: no message begins in the middle of a list."""
    ask = {"messages": [{"role": "user", "content": "a"}]}
    for fields, first in (
        ({"temperature": 9}, "temperature: takes a number"),
        ({"temperature": 9, "top_p": 7}, "2 problems:\n  - temperature: takes a number"),
    ):
        with pytest.raises(RequestError) as e:
            checked("chat", ask | fields)
        assert str(e.value).startswith(first)
        assert e.value.param == "temperature"
