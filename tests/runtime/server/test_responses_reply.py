"""The events of OpenAI's Responses: their order, their shapes, and what they add up to."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from wherry.runtime.answers import PromptTokensDetails, Usage
from wherry.runtime.server.endpoints.parts import (
    CallArguments,
    CallBegin,
    CallEnd,
    Delta,
    Reasoning,
    Text,
)
from wherry.runtime.server.endpoints.responses.reply import ResponseReply
from wherry.runtime.server.wire.errors import ApiError

from .part_lists import joined

EVENT = TypeAdapter(ResponseStreamEvent)
USAGE = Usage(10, 7, 17, PromptTokensDetails(4))
RUNNING = SimpleNamespace(opened={"ignored": [], "adapted": []})
TIMINGS = None  # this API has no times
HEAD = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
THOUGHT = [Reasoning("Let me "), Reasoning("see.")]
SAID = [Text("It is "), Text("sunny.")]
CALL = [
    CallBegin("call_a", "weather", False),
    CallArguments('{"city": "Ro'),
    CallArguments('me"}'),
]
OTHER = [CallBegin("call_b", "clock", False), CallArguments("{}"), CallEnd(True)]
TEXT = (
    "output_item.added content_part.added output_text.delta output_text.delta output_text.done "
    "content_part.done output_item.done"
)
THINKING = TEXT.replace("output_text", "reasoning_text")
TOOL = (
    "output_item.added function_call_arguments.delta function_call_arguments.delta "
    "function_call_arguments.done output_item.done"
)


def reply(keep=lambda response: None):
    return ResponseReply(lambda about: HEAD, keep)


def streamed(writer, deltas):
    chunks = [*writer.opening(USAGE, RUNNING), *(c for d in deltas for c in writer.chunks(d))]
    events_written = [*chunks, *writer.closing(USAGE, TIMINGS)]
    for i, event in enumerate(events_written):
        EVENT.validate_python(event)
        assert event["sequence_number"] == i
    return events_written


@pytest.mark.parametrize(
    ("parts", "finish", "expected", "last"),
    [
        (SAID, "stop", TEXT, "completed"),
        (SAID, "length", TEXT, "incomplete"),
        ([], "stop", "", "completed"),
        ([*THOUGHT, *SAID], "stop", f"{THINKING} {TEXT}", "completed"),
        ([*CALL, CallEnd(True)], "tool_calls", TOOL, "completed"),
        ([*SAID, *CALL, CallEnd(True)], "tool_calls", f"{TEXT} {TOOL}", "completed"),
        ([*THOUGHT, *CALL], "length", f"{THINKING} {TOOL}", "incomplete"),
    ],
)
def test_the_order_of_events(parts, finish, expected, last):
    deltas = [*(Delta([part]) for part in parts), Delta(finish=finish)]
    events = streamed(reply(), deltas)
    names = [e["type"].removeprefix("response.") for e in events]
    assert names[:2] == ["created", "in_progress"]
    assert " ".join(names[2:-1]) == expected
    assert names[-1] == last
    response = events[-1]["response"]
    assert response["status"] == last
    assert events[0]["response"]["output"] == [] and response["usage"]["total_tokens"] == 17
    reason = {"reason": "max_output_tokens"} if last == "incomplete" else None
    assert response.get("incomplete_details") == reason


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_adds_up_to_the_full_response(seed):
    rng = random.Random(seed)
    parts = [*THOUGHT, *SAID, *CALL, CallEnd(True), *OTHER]
    deltas = []
    while parts:
        step = rng.randint(1, 4)
        deltas.append(Delta(joined(parts[:step])))
        parts = parts[step:]
    deltas[-1].finish = "tool_calls"
    events = streamed(reply(), deltas)
    together = Delta(joined([p for d in deltas for p in d.parts]), finish="tool_calls")
    writer = reply()
    writer.opening(USAGE, RUNNING)
    full = writer.full_response(together, USAGE, TIMINGS)
    Response.model_validate(full)
    output = events[-1]["response"]["output"]
    assert [without_id(i) for i in output] == [without_id(i) for i in full["output"]]
    assert [i["type"] for i in output] == ["reasoning", "message", "function_call", "function_call"]
    assert [i["arguments"] for i in output[2:]] == ['{"city": "Rome"}', "{}"]
    check_items(events, output)


def without_id(item):
    return {name: value for name, value in item.items() if name != "id"}


def check_items(events, output):
    """Each event names the item that it belongs to, and the deltas of one are its text."""
    texts = {}
    for event in events[2:-1]:
        item = output[event["output_index"]]
        assert event.get("item_id", item["id"]) == item["id"]
        if event["type"].endswith(".delta"):
            texts[item["id"]] = texts.get(item["id"], "") + event["delta"]
        if event["type"] == "response.output_item.done":
            assert event["item"] == item
            text = item["arguments"] if "arguments" in item else item["content"][0]["text"]
            assert texts[item["id"]] == text


def test_logprobs_go_with_the_text_they_belong_to():
    alternatives = [
        {"token": "a", "logprob": -0.5, "bytes": [97]},
        {"token": "bytes:\\xe4", "logprob": -2.0, "bytes": [228]},
    ]
    token = {**alternatives[0], "top_logprobs": alternatives}
    deltas = [
        Delta([Text("a")], logprobs=[token]),
        Delta(logprobs=[token]),  # its text comes later
        Delta([Text("ab")], logprobs=[token], finish="stop"),
    ]
    events = streamed(reply(), deltas)
    counts = [len(e["logprobs"]) for e in events if e["type"] == "response.output_text.delta"]
    assert counts == [1, 2]
    content = events[-1]["response"]["output"][0]["content"][0]
    assert len(content["logprobs"]) == 3
    assert content["logprobs"][0]["top_logprobs"][1]["token"] == "bytes:\\xe4"


def test_what_is_complete_is_kept_once():
    kept = []
    writer = reply(kept.append)
    streamed(writer, [Delta([Text("a")], finish="stop")])
    assert len(kept) == 1 and kept[0]["output"][0]["content"][0]["text"] == "a"
    failing = reply(kept.append)
    failing.opening(USAGE, RUNNING)
    failing.chunks(Delta([Text("a")]))
    event = failing.failed(ApiError(500, "gone"))
    EVENT.validate_python(event)
    assert event["type"] == "response.failed" and event["response"]["error"]["message"] == "gone"
    assert event["sequence_number"] == 5
    assert len(kept) == 1
