"""The order of Anthropic's events, and that a stream adds up to the whole answer."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import pytest

from wherry.runtime.answer.delta import Delta
from wherry.runtime.answer.shapes import PromptTokensDetails, Usage
from wherry.runtime.server.endpoints.anthropic.reply import MessageReply
from wherry.runtime.tools.parts import CallArguments, CallBegin, CallEnd, Reasoning, Text, joined

USAGE = Usage(10, 7, 17, PromptTokensDetails(4))
DONE = SimpleNamespace(usage=USAGE)
THOUGHT = [Reasoning("Let me "), Reasoning("see.")]
SAID = [Text("It is "), Text("sunny.")]
CALL = [
    CallBegin(0, "call_a", "weather"),
    CallArguments(0, '{"city": "Ro'),
    CallArguments(0, 'me"}'),
]
OTHER = [CallBegin(1, "call_b", "clock"), CallArguments(1, "{}"), CallEnd(1)]
TEXT = "start:text text_delta text_delta stop"
THINKING = "start:thinking thinking_delta thinking_delta signature_delta stop"
TOOL = "start:tool_use input_json_delta input_json_delta stop"


def reply(**options):
    return MessageReply("m", **{"cut": False, "omit": False, **options})


def streamed(made, deltas):
    chunks = [*made.opening(DONE), *(c for d in deltas for c in made.chunks(d))]
    return [c.model_dump() for c in [*chunks, *made.closing(DONE)]]


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
        ([*CALL, CallEnd(0)], "tool_calls", TOOL, "tool_use"),
        ([*SAID, *CALL, CallEnd(0)], "tool_calls", f"{TEXT} {TOOL}", "tool_use"),
        (
            [*THOUGHT, *CALL, CallEnd(0), *OTHER],
            "tool_calls",
            f"{THINKING} {TOOL} start:tool_use input_json_delta stop",
            "tool_use",
        ),
        ([*SAID, *CALL], "length", f"{TEXT} {TOOL}", "max_tokens"),
        ([CallBegin(0, "a", "f"), CallEnd(0)], "tool_calls", "start:tool_use stop", "tool_use"),
        (THOUGHT, "length", THINKING, "max_tokens"),
    ],
)
def test_the_order_of_events(parts, finish, expected, reason):
    deltas = [*(Delta(0, [part]) for part in parts), Delta(0, finish=finish)]
    events = streamed(reply(), deltas)
    names = [short(e) for e in events]
    assert names[:2] == ["message_start", "ping"]
    assert " ".join(names[2:-2]) == expected
    assert names[-1] == "message_stop"
    assert events[-2]["delta"] == {"stop_reason": reason, "stop_sequence": None}


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_adds_up_to_the_whole(seed):
    rng = random.Random(seed)
    parts = [*THOUGHT, *SAID, *CALL, CallEnd(0), *OTHER]
    pieces = [p for part in parts for p in cut(part, rng)]
    deltas, at = [], 0
    while at < len(pieces):
        step = rng.randint(1, 5)
        deltas.append(Delta(0, joined(pieces[at : at + step])))
        at += step
    deltas[-1].finish = "tool_calls"
    made = reply()
    events = streamed(made, deltas)
    whole = made.whole([Delta(0, joined(pieces), finish="tool_calls")], DONE).model_dump()
    assert collected(events) == whole


def cut(part, rng):
    text = getattr(part, "text", "")
    if len(text) < 2:
        return [part]
    at = rng.randrange(1, len(text))
    index = [part.index] if isinstance(part, CallArguments) else []
    return [type(part)(*index, text[:at]), type(part)(*index, text[at:])]


def test_a_stop_sequence_is_named():
    delta = Delta(0, [Text("a")], finish="stop", stop="END")
    end = {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert streamed(reply(), [delta])[-2]["delta"] == end
    assert reply().whole([delta], DONE).model_dump().items() >= end.items()


def test_a_context_that_ends_first_is_told_from_max_tokens():
    whole = reply(cut=True).whole([Delta(0, [Text("a")], finish="length")], DONE)
    assert whole.model_dump()["stop_reason"] == "model_context_window_exceeded"


def test_tokens_from_the_cache_are_counted_apart():
    usage = reply().whole([Delta(0, [Text("a")], finish="stop")], DONE).model_dump()["usage"]
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
    parts = [CallBegin(0, "a", "f"), CallArguments(0, arguments)]
    whole = reply().whole([Delta(0, parts, finish="length")], DONE).model_dump()
    assert whole["content"][0]["input"] == expected
    json.dumps(whole, allow_nan=False)


def test_thinking_may_be_left_out_but_for_its_signature():
    deltas = [Delta(0, [part]) for part in [*THOUGHT, *SAID]] + [Delta(0, finish="stop")]
    names = [short(e) for e in streamed(reply(omit=True), deltas)]
    assert names[2:5] == ["start:thinking", "signature_delta", "stop"]
    whole = reply(omit=True).whole([Delta(0, joined(THOUGHT), finish="stop")], DONE).model_dump()
    assert whole["content"][0]["thinking"] == "" and whole["content"][0]["signature"]
