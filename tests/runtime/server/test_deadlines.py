"""Requests that take too long."""

from __future__ import annotations

import json
import time

import pytest

from wherry.runtime import MLCEngine, create_app

from ..live_server import live
from .asking import CHAT, COMPLETIONS, HI, client_of, error, post

LONG = {"context": 1_000_000, "pages": 100_000, "step_seconds": 0.01}


def freed(model):
    end = time.monotonic() + 5
    while model.dispatcher.active or model.stats().pages_free < 100_000:
        assert time.monotonic() < end
        time.sleep(0.01)
    return True


def test_an_answer_past_its_deadline_is_ended(make):
    model = make(None, **LONG)
    client = client_of(create_app(MLCEngine.of(model), request_timeout=0.3))
    answer = error(client.post(CHAT, json=HI), 504)
    assert answer["code"] == "deadline_exceeded" and "0.3 s" in answer["message"]
    written = int(answer["message"].split("after ")[1].split()[0])
    assert 1 <= written <= 60
    assert freed(model)


def test_a_stream_past_its_deadline_says_so(make):
    model = make(None, **LONG)
    with live(model, request_timeout=30) as url:
        status, _, text = post(url, CHAT, {**HI, "stream": True}, **{"X-Request-Timeout": "0.3"})
        events = [json.loads(e.removeprefix("data: ")) for e in text.split("\n\n") if "{" in e]
        assert status == 200
        assert len(events) > 2
        assert events[-1]["error"]["code"] == "deadline_exceeded"
        assert "[DONE]" not in text
        assert freed(model)


def test_clients_shorten_the_limit_and_never_lengthen_it(make):
    client = client_of(create_app(MLCEngine.of(make(None, **LONG)), request_timeout=0.2))
    start = time.monotonic()
    for seconds, status in (("60", 504), ("0.1", 408)):
        assert error(client.post(CHAT, json=HI, headers={"X-Request-Timeout": seconds}), status)
    assert time.monotonic() - start < 5


def test_in_the_queue_too(make):
    model = make(None, **LONG)
    client = client_of(create_app(MLCEngine.of(model)))
    streams = [MLCEngine.of(model).chat.completions.create(**HI, stream=True) for _ in range(16)]
    answer = client.post(COMPLETIONS, json={"prompt": "a"}, headers={"X-Request-Timeout": "0.2"})
    assert "after 0 tokens" in error(answer, 408)["message"]
    for stream in streams:
        stream.close()


@pytest.mark.parametrize("seconds", ["", "x", "0", "-1", "nan", "inf", "1e999"])
def test_what_is_no_time(make, seconds):
    client = client_of(create_app(MLCEngine.of(make())))
    answer = client.post(CHAT, json=HI, headers={"X-Request-Timeout": seconds})
    assert error(answer, 400)["code"] == "invalid_timeout"


def test_quick_answers_are_complete(make):
    client = client_of(create_app(MLCEngine.of(make("one two")), request_timeout=20))
    assert client.post(CHAT, json=HI).json()["choices"][0]["message"]["content"] == "one two"
