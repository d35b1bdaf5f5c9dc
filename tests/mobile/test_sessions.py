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
            completion = engine.chat.completions.create(messages=list(messages), **NEW, **fields)
            return completion.choices[0].message.content

        yield of


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def test_a_session_keeps_the_conversation(said, answer):
    turned = said["turns"]
    first = answer(SYSTEM, *ASK)
    turns = [*ASK, assistant(first), user("And a bear?")]
    second = answer(SYSTEM, *turns)
    assert (turned["first"], turned["streamed"], turned["again"]) == (first, second, second)
    assert turned["said"] == [*turns, assistant(second)]
    assert turned["undone"] == turns[2] and turned["left"] == 2
    assert turned["rate"]


def test_the_oldest_turns_are_left_out(said, answer):
    outgrown = said["outgrown"]
    assert outgrown["dropped"][0] == 0 and outgrown["dropped"] == sorted(outgrown["dropped"])
    dropped = outgrown["dropped"][-1]
    assert dropped > 0 and dropped % 2 == 0 and len(outgrown["kept"]) == 14
    sent = [SYSTEM, *outgrown["kept"][dropped:-1]]
    assert outgrown["last"] == assistant(answer(*sent))
    # One turn more does not fit.
    with pytest.raises(Exception, match="context"):
        answer(SYSTEM, *outgrown["kept"][dropped - 2 : -1])


def test_a_turn_that_fails_leaves_nothing_and_one_that_is_left_its_text(said):
    stopped = said["stopped"]
    assert (stopped["refused"], stopped["after"]) == ("context_length_exceeded", 2)
    assert stopped["said"][2:] == [user("More."), assistant(stopped["seen"])]
    assert stopped["seen"]


def test_the_beginning_is_computed_ahead(said):
    usage = said["prewarmed"]["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert usage["prompt_tokens"] - cached < 48 < cached
    assert said["prewarmed"]["said"] == 2


@pytest.mark.skipif(not guided_cases.available(), reason="the library was built without xgrammar")
def test_tools_are_called_and_answered(said):
    tools = said["tools"]
    assert tools["given"] == [{"city": "Oslo"}]
    for name, result in (("weather", "rain"), ("broken", "Error: no network")):
        (question, call, tool_result, last), finish = tools[name]
        assert question == user("Do I need an umbrella?")
        (requested,) = call["tool_calls"]
        assert requested["function"]["name"] == name and call["content"] is None
        assert tool_result == {"role": "tool", "tool_call_id": requested["id"], "content": result}
        assert last["role"] == "assistant" and last["content"] and finish in ("stop", "length")
