"""Conversations that the Kotlin library keeps, against requests of Python's engine."""

from __future__ import annotations

import json

import pytest

from wherry.runtime import MLCEngine

from ..app import guided_cases
from ..app.request_cases import ASK
from .conftest import RUNTIME, java_libraries, java_on

pytestmark = [pytest.mark.cpu, pytest.mark.mobile]
SYSTEM = {"role": "system", "content": "You tell stories."}
NEW = {"temperature": 0, "max_tokens": 12}
CONTEXT = 512  # as kotlin/SessionChecks.kt has it


@pytest.fixture(scope="module")
def said(jars, classes, bridge, demo):
    options = json.dumps({"runtime": str(RUNTIME), "threads": 1})
    cases = ["turns", "outgrown", "stopped", "prewarmed"]
    cases += ["tools"] if guided_cases.available() else []
    path = f"{classes}:{jars}"
    return java_on(java_libraries(bridge), path, "SessionChecksKt", demo, options, *cases)


@pytest.fixture(scope="module")
def answer(demo):
    """The text that Python's engine answers to messages, with as small a context."""
    with MLCEngine(demo, threads=1, context=CONTEXT) as engine:

        def of(*messages, **fields):
            made = engine.chat.completions.create(messages=list(messages), **NEW, **fields)
            return made.choices[0].message.content

        yield of


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def test_a_session_keeps_the_conversation(said, answer):
    found = said["turns"]
    first = answer(SYSTEM, *ASK)
    turns = [*ASK, assistant(first), user("And a bear?")]
    second = answer(SYSTEM, *turns)
    assert (found["first"], found["streamed"], found["again"]) == (first, second, second)
    assert found["said"] == [*turns, assistant(second)]
    assert found["undone"] == turns[2] and found["left"] == 2
    assert found["rate"]


def test_the_oldest_turns_are_left_out(said, answer):
    found = said["outgrown"]
    assert found["dropped"][0] == 0 and found["dropped"] == sorted(found["dropped"])
    dropped = found["dropped"][-1]
    assert dropped > 0 and dropped % 2 == 0 and len(found["kept"]) == 14
    sent = [SYSTEM, *found["kept"][dropped:-1]]
    assert found["last"] == assistant(answer(*sent))
    # One turn more does not fit.
    with pytest.raises(Exception, match="context"):
        answer(SYSTEM, *found["kept"][dropped - 2 : -1])


def test_a_turn_that_fails_leaves_nothing_and_one_that_is_left_its_text(said):
    found = said["stopped"]
    assert (found["refused"], found["after"]) == ("context_length_exceeded", 2)
    assert found["said"][2:] == [user("More."), assistant(found["seen"])]
    assert found["seen"]


def test_the_beginning_is_computed_ahead(said):
    usage = said["prewarmed"]["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert usage["prompt_tokens"] - cached < 48 < cached
    assert said["prewarmed"]["said"] == 2


@pytest.mark.skipif(not guided_cases.available(), reason="the library was built without xgrammar")
def test_tools_are_called_and_answered(said):
    found = said["tools"]
    assert found["given"] == [{"city": "Oslo"}]
    for name, result in (("weather", "rain"), ("broken", "Error: no network")):
        (asked, call, told, last), finish = found[name]
        assert asked == user("Do I need an umbrella?")
        (made,) = call["tool_calls"]
        assert made["function"]["name"] == name and call["content"] is None
        assert told == {"role": "tool", "tool_call_id": made["id"], "content": result}
        assert last["role"] == "assistant" and last["content"] and finish in ("stop", "length")
