"""Log probabilities by the thousand: refused before they take memory, and streamed as a whole."""

from __future__ import annotations

import pytest

from wherry.runtime import MLCEngine
from wherry.runtime.core import native
from wherry.runtime.errors import RequestError
from wherry.runtime.host.request import HostRequest, checked
from wherry.runtime.host.sinks import BlockingSink

from .fake_core import saying

HI = {"messages": [{"role": "user", "content": "the cat"}]}

REFUSED = {
    "chat": (
        {**HI, "n": 128, "max_tokens": 900, "logprobs": True, "top_logprobs": 20},
        "n x max_tokens x (top_logprobs + 1) is 2419200, of 128 outputs",
        "top_logprobs",
    ),
    "completion": (
        {"prompt": "a", "n": 128, "max_tokens": 900, "logprobs": 20},
        "n x max_tokens x (logprobs + 1) is 2419200, of 128 outputs",
        "logprobs",
    ),
    "prompt": (
        {"prompt": [5] * 900, "n": 128, "max_tokens": 1, "prompt_logprobs": 20},
        "n x the prompt's tokens x (prompt_logprobs + 1) is 2419200, of 128 outputs",
        "prompt_logprobs",
    ),
}


def start(model, task, fields):
    checked(task, fields)
    running = model.start(HostRequest(task, fields), BlockingSink())
    running.close()


@pytest.mark.parametrize("name", REFUSED)
def test_they_are_counted_before(make, name):
    model = make(context=4096)
    fields, message, param = REFUSED[name]
    task = "chat" if name == "chat" else "completion"
    with pytest.raises(RequestError) as raised:
        start(model, task, fields)
    assert message in str(raised.value) and f"at most {2**21} log" in str(raised.value)
    assert raised.value.param == param
    start(model, task, {**fields, "n": 64})


def test_one_answer_of_a_long_context_is_not_too_many(make):
    """Who says neither `n` nor `max_tokens` has not asked for too much."""
    model = make(context=262_144, pages=2**15)
    start(model, "chat", {**HI, "logprobs": True, "top_logprobs": 20})
    with pytest.raises(RequestError):
        start(model, "chat", {**HI, "logprobs": True, "top_logprobs": 20, "n": 2})


def test_long_bad_words_are_counted_before(make):
    words = [f"{i:04} " + "long " * 200 for i in range(1024)]
    with pytest.raises(
        RequestError, match=r"bad_words have 1029120 characters in all; at most 65536"
    ):
        start(make(), "chat", {**HI, "bad_words": words})
    start(make(), "chat", {**HI, "bad_words": words[:60]})


@pytest.mark.parametrize("n", [0, 1, 20])
def test_those_of_a_stream_are_those_of_the_full_response(make, n):
    """Two thousand tokens, among their alternatives parts of characters."""
    rows = [5 + i % 250 for i in range(2000)]
    model = make(script=saying(rows, 5), context=4096)
    engine = MLCEngine.of(model)
    fields = {**HI, "logprobs": True, "top_logprobs": n, "max_tokens": 2000}
    full = engine.chat.completions.create(**fields).choices[0].logprobs
    assert len(full.content) == 2000 and len(full.content[3].top_logprobs) == n
    streamed = []
    for chunk in engine.chat.completions.create(**fields, stream=True):
        if logprobs := chunk.choices[0].logprobs:
            streamed += logprobs.content
    assert streamed == full.content


def test_a_list_that_has_grown_is_copied_again():
    arrays, tokens = native._Arrays(), [1]
    assert list(arrays.of("prompt", tokens, native.int32s)) == [1]
    tokens.append(2)
    assert list(arrays.of("prompt", tokens, native.int32s)) == [1, 2]
