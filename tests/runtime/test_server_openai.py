"""OpenAI's own client against the server on a loopback port."""

from __future__ import annotations

import asyncio
import socket
import time

import openai
import pytest

from .conftest import core_of
from .live_server import live

TEXT = "Hello, wörld 🎉!"
HI = [{"role": "user", "content": "the cat"}]


@pytest.fixture
def model(make):
    return make(TEXT)


@pytest.fixture
def url(model):
    with live(model) as url:
        yield url


@pytest.fixture
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        yield client


def wait_free(model, seconds=5.0):
    end = time.monotonic() + seconds
    while (stats := model.stats()).pages_free < stats.pages_total or stats.running:
        assert time.monotonic() < end, stats
        time.sleep(0.005)


def test_models(client):
    assert [m.id for m in client.models.list()] == ["small"]
    assert client.models.retrieve("small").owned_by == "wherry"
    with pytest.raises(openai.NotFoundError) as e:
        client.models.retrieve("org/other")
    assert e.value.code == "model_not_found"


def test_paths_without_their_version(url, model):
    with openai.OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        assert [m.id for m in client.models.list()] == ["small"]
        assert client.models.retrieve("small").id == "small"
        assert client.chat.completions.create(model="small", messages=HI).choices
        assert client.completions.create(model="small", prompt="a", max_tokens=1).choices
        with pytest.raises(openai.BadRequestError, match="without embeddings"):
            client.embeddings.create(model="small", input="a")


def test_chat(client):
    answer = client.chat.completions.create(
        model="small", messages=HI, n=2, logprobs=True, top_logprobs=3
    )
    assert [c.message.content for c in answer.choices] == [TEXT] * 2
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 3
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_chat_stream(client):
    chunks = list(
        client.chat.completions.create(
            model="small", messages=HI, stream=True, stream_options={"include_usage": True}, n=2
        )
    )
    texts = ["", ""]
    for chunk in chunks[:-1]:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [TEXT] * 2
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 2
    ends = [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason]
    assert ends == ["stop"] * 2


def test_chat_stream_without_usage(client):
    chunks = list(client.chat.completions.create(model="small", messages=HI, stream=True))
    assert all(len(c.choices) == 1 for c in chunks)


def test_completions(client, model):
    answer = client.completions.create(
        model="small", prompt=["the cat", "a"], max_tokens=3, logprobs=2
    )
    assert [c.index for c in answer.choices] == [0, 1]
    assert TEXT.startswith(answer.choices[1].text)
    assert len(answer.choices[0].logprobs.tokens) == 3
    chunks = client.completions.create(model="small", prompt=[7, 8], stream=True, max_tokens=50)
    assert "".join(c.choices[0].text for c in chunks) == TEXT
    assert core_of(model).added[-1][0] == [7, 8]


def test_text_parts_and_developer(client, model):
    parts = [{"type": "text", "text": "the "}, {"type": "text", "text": "cat"}]
    client.chat.completions.create(
        model="small",
        messages=[{"role": "developer", "content": "a"}, {"role": "user", "content": parts}],
    )
    prompt = model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)
    assert prompt == "<|system|>a<|user|>the cat<|assistant|>"


def test_errors_carry_what_the_client_shows(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model="small", messages=HI, temperature=7)
    assert e.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(
            model="small", messages=HI, functions=[{"name": "f", "parameters": {}}]
        )
    assert e.value.param == "functions"
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(model="small", prompt=[5] * 600)
    assert e.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="image_url") as e:
        image = {"type": "image_url", "image_url": {"url": "data:"}}
        client.chat.completions.create(
            model="small", messages=[{"role": "user", "content": [image]}]
        )
    assert e.value.param == "messages[0].content[0].type"


def test_an_error_within_a_stream_is_an_event(client, model):
    core_of(model).fail_with = "the device is gone"
    with pytest.raises(openai.APIError, match="the device is gone"):
        list(client.chat.completions.create(model="small", messages=HI, stream=True))
    assert list(client.chat.completions.create(model="small", messages=HI, stream=True))


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_request(make, stream):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    with live(model) as url:
        host, port = url.removeprefix("http://").split(":")
        body = f'{{"prompt": "a", "max_tokens": 900000, "stream": {str(stream).lower()}}}'
        head = (
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall((head + body).encode())
            if stream:
                assert b"200 OK" in connection.recv(300)
            end = time.monotonic() + 5
            while model.stats().running == 0:
                assert time.monotonic() < end
                time.sleep(0.002)
            assert model.stats().pages_free < model.stats().pages_total
        wait_free(model)
        assert model.dispatcher.active == 0


def test_closing_the_clients_stream_frees_its_request(make):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    with live(model) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="x") as client:
        stream = client.chat.completions.create(model="small", messages=HI, stream=True)
        next(stream)
        stream.close()
        wait_free(model)


async def test_sixteen_streams_at_once(make):
    model = make("one two three " * 20, step_seconds=0.001)
    with live(model) as url:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x") as client:

            async def ask():
                stream = await client.chat.completions.create(
                    model="small", messages=HI, stream=True
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream])

            texts = await asyncio.gather(*(ask() for _ in range(16)))
        assert texts == ["one two three " * 20] * 16
        stats = model.stats()
        assert stats.finished == 16
        assert stats.steps < 16 * stats.decode_tokens / 16  # they ran together
        wait_free(model)


async def test_async_client_full_answers(make):
    model = make(TEXT)
    with live(model) as url:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x") as client:
            answers = await asyncio.gather(
                *(client.chat.completions.create(model="small", messages=HI) for _ in range(8))
            )
    assert [a.choices[0].message.content for a in answers] == [TEXT] * 8
