"""The order of Anthropic's events, and that a stream adds up to the whole answer."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import pytest

from wherry.runtime.answers import PromptTokensDetails, Usage
from wherry.runtime.server.endpoints.anthropic.reply import MessageReply
from wherry.runtime.server.endpoints.parts import (
    CallArguments,
    CallBegin,
    CallEnd,
    Delta,
    Reasoning,
    Text,
)

from .part_lists import joined

USAGE = Usage(10, 7, 17, PromptTokensDetails(4))
RUNNING = SimpleNamespace(opened={"room": 20})
TIMINGS = None  # Anthropic's API has no times
THOUGHT = [Reasoning("Let me "), Reasoning("see.")]
SAID = [Text("It is "), Text("sunny.")]
CALL = [
    CallBegin("call_a", "weather", False),
    CallArguments('{"city": "Ro'),
    CallArguments('me"}'),
]
OTHER = [CallBegin("call_b", "clock", False), CallArguments("{}"), CallEnd(True)]
TEXT = "start:text text_delta text_delta stop"
THINKING = "start:thinking thinking_delta thinking_delta signature_delta stop"
TOOL = "start:tool_use input_json_delta input_json_delta stop"


def reply(**options):
    writer = MessageReply("m", **{"max_tokens": 20, "omit": False, **options})
    writer.opening(USAGE, RUNNING)
    return writer


def streamed(writer, deltas):
    chunks = [*writer.opening(USAGE, RUNNING), *(c for d in deltas for c in writer.chunks(d))]
    return [*chunks, *writer.closing(USAGE, TIMINGS)]


def short(event):
    kind = event["type"].removeprefix("content_block_")
    if kind == "start":
        return f"start:{event['content_block']['type']}"
    return event["delta"]["type"] if kind == "delta" else kind


def collected(events):
    """The message that Anthropic's client makes of a stream."""
    message = json.loads(json.dumps(events[0]["message"]))
    inputs = {}
    for event in events[1:]:
        if event["type"] == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            assert event["index"] == len(message["content"]) - 1
            if delta["type"] == "input_json_delta":
                text = inputs[event["index"]] = (
                    inputs.get(event["index"], "") + delta["partial_json"]
                )
            else:
                (name,) = set(delta) - {"type"}
                block[name] += delta[name]
        elif event["type"] == "message_delta":
            message |= event["delta"]
            message["usage"] |= event["usage"]
    for index, text in inputs.items():
        message["content"][index]["input"] = json.loads(text)
    return message


@pytest.mark.parametrize(
    ("parts", "finish", "expected", "reason"),
    [
        (SAID, "stop", TEXT, "end_turn"),
        (SAID, "length", TEXT, "max_tokens"),
        ([], "stop", "", "end_turn"),
        ([*THOUGHT, *SAID], "stop", f"{THINKING} {TEXT}", "end_turn"),
        ([*CALL, CallEnd(True)], "tool_calls", TOOL, "tool_use"),
        ([*SAID, *CALL, CallEnd(True)], "tool_calls", f"{TEXT} {TOOL}", "tool_use"),
        (
            [*THOUGHT, *CALL, CallEnd(True), *OTHER],
            "tool_calls",
            f"{THINKING} {TOOL} start:tool_use input_json_delta stop",
            "tool_use",
        ),
        ([*SAID, *CALL], "length", f"{TEXT} {TOOL}", "max_tokens"),
        (
            [CallBegin("a", "f", False), CallEnd(True)],
            "tool_calls",
            "start:tool_use stop",
            "tool_use",
        ),
        (THOUGHT, "length", THINKING, "max_tokens"),
    ],
)
def test_the_order_of_events(parts, finish, expected, reason):
    deltas = [*(Delta([part]) for part in parts), Delta(finish=finish)]
    events = streamed(reply(), deltas)
    names = [short(e) for e in events]
    assert names[:2] == ["message_start", "ping"]
    assert " ".join(names[2:-2]) == expected
    assert names[-1] == "message_stop"
    assert events[-2]["delta"] == {"stop_reason": reason, "stop_sequence": None}


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_adds_up_to_the_full_response(seed):
    rng = random.Random(seed)
    parts = [*THOUGHT, *SAID, *CALL, CallEnd(True), *OTHER]
    pieces = [p for part in parts for p in cut(part, rng)]
    deltas, at = [], 0
    while at < len(pieces):
        step = rng.randint(1, 5)
        deltas.append(Delta(joined(pieces[at : at + step])))
        at += step
    deltas[-1].finish = "tool_calls"
    writer = reply()
    events = streamed(writer, deltas)
    full = writer.full_response(Delta(joined(pieces), finish="tool_calls"), USAGE, TIMINGS)
    assert collected(events) == full


def cut(part, rng):
    text = getattr(part, "text", "")
    if len(text) < 2:
        return [part]
    at = rng.randrange(1, len(text))
    return [type(part)(text[:at]), type(part)(text[at:])]


def test_a_stop_sequence_is_named():
    delta = Delta([Text("a")], finish="stop", stop="END")
    end = {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert streamed(reply(), [delta])[-2]["delta"] == end
    assert reply().full_response(delta, USAGE, TIMINGS).items() >= end.items()


def test_a_context_that_ends_first_differs_from_max_tokens():
    full = reply(max_tokens=21).full_response(Delta([Text("a")], finish="length"), USAGE, TIMINGS)
    assert full["stop_reason"] == "model_context_window_exceeded"


def test_tokens_from_the_cache_are_counted_apart():
    usage = reply().full_response(Delta([Text("a")], finish="stop"), USAGE, TIMINGS)["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (6, 4)
    assert usage["output_tokens"] == 7


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"city": "Ro', {"city": "Ro"}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ("", {}),
        ("no JSON", {}),
        ("[1]", {}),
        ('{"a": NaN}', {}),
    ],
)
def test_arguments_that_were_cut_off(arguments, expected):
    parts = [CallBegin("a", "f", False), CallArguments(arguments)]
    full = reply().full_response(Delta(parts, finish="length"), USAGE, TIMINGS)
    assert full["content"][0]["input"] == expected
    json.dumps(full, allow_nan=False)


def test_thinking_may_be_left_out_but_for_its_signature():
    deltas = [Delta([part]) for part in [*THOUGHT, *SAID]] + [Delta(finish="stop")]
    names = [short(e) for e in streamed(reply(omit=True), deltas)]
    assert names[2:5] == ["start:thinking", "signature_delta", "stop"]
    full = reply(omit=True).full_response(Delta(joined(THOUGHT), finish="stop"), USAGE, TIMINGS)
    assert full["content"][0]["thinking"] == "" and full["content"][0]["signature"]
