"""Log probabilities by the million: what they take, and that they are the same as one by one."""

from __future__ import annotations

import json
import struct
import tracemalloc

import pytest

from wherry.runtime.answer.assembler import Assembler
from wherry.runtime.answer.delta import Delta
from wherry.runtime.answer.lazy import LazyList, json_text
from wherry.runtime.caller import Caller
from wherry.runtime.core import native
from wherry.runtime.core.interface import Event, Finish, TopTokens
from wherry.runtime.errors import RequestError
from wherry.runtime.load.model import parse_chat, parse_completion
from wherry.runtime.request.plan import MAX_LOGPROBS
from wherry.runtime.server.wire.framing import OPENAI
from wherry.runtime.server.wire.json_body import encoded, encoded_blocks
from wherry.runtime.text.stop_strings import StopAutomaton

HI = {"messages": [{"role": "user", "content": "the cat"}]}
ANSWERS = {
    "chat": lambda n: parse_chat({**HI, "logprobs": True, "top_logprobs": n}),
    "completion": lambda n: parse_completion({"prompt": "a", "logprobs": n}),
}


def events(count: int, n: int = 20) -> list[Event]:
    """Of the core, with parts of characters among the alternatives."""
    return [
        Event(
            1,
            5 + i % 90,
            Finish.LENGTH if i == count - 1 else Finish.RUNNING,
            -1e-7,
            TopTokens(
                struct.pack(
                    f"{n}i{n}f", *(i % 260 + j for j in range(n)), *(-j / 7 for j in range(n))
                )
            ),
        )
        for i in range(count)
    ]


def collected(model, kind: str, n: int, count: int):
    """The reply, and all of one choice."""
    plan, reply = getattr(model, kind)(ANSWERS[kind](n), Caller())
    choice = Assembler(plan.jobs[0], plan, model.tokenizer, StopAutomaton(plan.stops))
    delta = Delta(0)
    for event in events(count, n):
        pushed = choice.push([event])
        delta.parts += pushed.parts
        delta.logprobs += pushed.logprobs
    return reply, delta


@pytest.mark.parametrize("n", [0, 1, 20])
@pytest.mark.parametrize("kind", ANSWERS)
def test_the_json_is_that_of_the_objects(make, kind, n):
    reply, delta = collected(make(), kind, n, 50)
    (chunk,) = reply.chunks(delta)
    plain = chunk.model_dump()
    assert "LazyList" not in repr(plain)
    assert json.loads(encoded(chunk.dumped())) == plain
    assert json.loads(OPENAI.of(chunk).removeprefix(b"data: ")) == plain
    logprobs = chunk.choices[0].logprobs
    if kind == "chat":
        assert len(logprobs.content) == 50
        assert len(logprobs.content[3].top_logprobs) == n
        assert logprobs.content[3].logprob == -1e-7
        assert [t.token for t in logprobs.content[:2]] == [
            t["token"] for t in plain["choices"][0]["logprobs"]["content"]
        ][:2]
    else:
        assert logprobs.top_logprobs[3] == plain["choices"][0]["logprobs"]["top_logprobs"][3]


def test_what_they_take(make):
    """Held: the core's numbers and a few words a token. Written: the text, once."""
    model, count = make(), 2000
    collected(model, "chat", 20, 300)  # the texts of pieces are kept
    tracemalloc.start()
    try:
        reply, delta = collected(model, "chat", 20, count)
        held, _ = tracemalloc.get_traced_memory()
        (chunk,) = reply.chunks(delta)
        tracemalloc.reset_peak()
        size = sum(map(len, encoded_blocks(chunk.dumped())))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 40 * 20 * count  # as objects: 400 bytes each
    assert peak - held < 2**20 * 6 + size / 10  # a block or two


def test_no_infinity_is_written(make):
    reply, delta = collected(make(), "chat", 20, 3)
    delta.logprobs[1] = delta.logprobs[1]._replace(top=[(b"a", float("-inf"))])
    (chunk,) = reply.chunks(delta)
    with pytest.raises(ValueError, match="JSON does not have"):
        OPENAI.of(chunk)


def test_lazy_lists():
    made = []
    lazy = LazyList([1, 2, 3], lambda x: made.append(x) or {"x": x})
    assert len(lazy) == 3 and not made
    assert lazy[1] == {"x": 2} and lazy[1:] == [{"x": 2}, {"x": 3}] and made == [2, 2, 3]
    assert list(lazy) == [{"x": 1}, {"x": 2}, {"x": 3}] == lazy
    assert json_text({"a": lazy, "b": [lazy, "é"]}) == (
        '{"a":[{"x":1},{"x":2},{"x":3}],"b":[[{"x":1},{"x":2},{"x":3}],"é"]}'
    )
    with pytest.raises(TypeError, match="not JSON"):
        json_text({"a": object()})


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


@pytest.mark.parametrize("name", REFUSED)
def test_they_are_counted_before(make, name):
    model = make(context=4096)
    fields, message, param = REFUSED[name]
    parse, plan = (
        (parse_chat, model.chat) if name == "chat" else (parse_completion, model.completion)
    )
    with pytest.raises(RequestError) as found:
        plan(parse(fields), Caller())
    assert message in str(found.value) and f"at most {MAX_LOGPROBS} log" in str(found.value)
    assert found.value.param == param
    plan(parse({**fields, "n": 64}), Caller())


def test_one_answer_of_a_long_context_is_not_too_many(make):
    """Who says neither `n` nor `max_tokens` has not asked for too much."""
    model = make(context=262_144, pages=2**15)
    model.chat(parse_chat({**HI, "logprobs": True, "top_logprobs": 20}), Caller())
    with pytest.raises(RequestError):
        model.chat(parse_chat({**HI, "logprobs": True, "top_logprobs": 20, "n": 2}), Caller())


def test_long_bad_words_are_counted_before(make):
    words = [f"{i:04} " + "long " * 200 for i in range(1024)]
    with pytest.raises(
        RequestError, match=r"bad_words have 1029120 characters in all; at most 65536"
    ):
        make().chat(parse_chat({**HI, "bad_words": words}), Caller())
    make().chat(parse_chat({**HI, "bad_words": words[:60]}), Caller())


def test_arrays_are_made_once_for_all_choices(make, monkeypatch):
    """128 choices share one copy: making it holds the interpreter's lock for long."""
    made = []
    monkeypatch.setattr(native, "int32s", lambda values: made.append(len(values)) or [])
    arrays, model = native._Arrays(), make(context=4096)
    request = parse_chat({**HI, "n": 128, "bad_words": ["one two", "three"], "stop": ["x"]})
    plan, _ = model.chat(request, Caller())
    assert len(plan.jobs) == 128
    for job in plan.jobs:
        arrays.of("prompt", job.prompt, native.int32s)
        arrays.of("bad_words", job.params.bad_words, native.int32s)
    assert len(made) == 2
    arrays.of("prompt", [1, 2], native.int32s)
    assert made[-1] == 2


def test_a_list_that_has_grown_is_copied_again():
    arrays, tokens = native._Arrays(), [1]
    assert list(arrays.of("prompt", tokens, native.int32s)) == [1]
    tokens.append(2)
    assert list(arrays.of("prompt", tokens, native.int32s)) == [1, 2]
