"""What a benchmark reads of a server: text, times, counts and every way in which it can fail."""

from __future__ import annotations

import asyncio
import json

import pytest

from wherry.bench.connection import TargetAddress
from wherry.bench.http_target import HttpTarget
from wherry.bench.outcome import Ask, ask
from wherry.bench.sse import Events
from wherry.errors import ModelError, UsageError

from .stand_in import DONE, StandIn, chunk, event, usage

CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}


def answering(*pieces, status=200):
    return StandIn(lambda body: (status, [p if isinstance(p, tuple) else (0, p) for p in pieces]))


async def outcome_of(server, body=CHAT, **options):
    target = HttpTarget(TargetAddress.parse(server.url), "boat", **options)
    try:
        return await ask(target, Ask(body=body))
    finally:
        await target.close()


async def test_text_times_and_counts():
    pieces = (
        chunk("a"),
        (0.05, chunk("b") + chunk("")),
        (0.05, chunk("c")),
        usage(7, 5, 2, 3, 1),
        DONE,
    )
    async with answering(*pieces) as server:
        outcome = await outcome_of(server, api_key="secret")
        (body,) = server.bodies
        (head,) = server.heads
    assert outcome.error is None
    assert (outcome.prompt_tokens, outcome.cached_tokens, outcome.output_tokens) == (7, 2, 5)
    assert (outcome.draft_tokens, outcome.accepted_tokens) == (4, 3)
    assert len(outcome.pieces) == 3  # one without text counts for nothing
    first, second, third = outcome.pieces
    assert outcome.due <= outcome.sent <= first < second < third <= outcome.ended
    assert second - first >= 0.045 and third - second >= 0.045
    assert body["model"] == "boat" and body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert "Authorization: Bearer secret" in head


async def test_completions_have_their_own_path_and_no_usage_is_no_failure():
    said = event({"choices": [{"index": 0, "text": "sea"}]})
    async with answering(said, said, DONE) as server:
        outcome = await outcome_of(server, {"prompt": "The", "max_tokens": 2})
        assert server.heads[0].startswith("POST /v1/completions ")
    assert (outcome.error, outcome.has_usage, outcome.output_tokens) == (None, False, 2)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_events_are_complete_however_the_stream_is_cut(size):
    stream = b": a comment\r\n\r\n" + chunk("a").replace(b"\n", b"\r\n") + usage(1, 2) + DONE
    events = Events()
    for i in range(0, len(stream), size):
        events.feed(float(i), stream[i : i + size])
    data = [d for _, d in events.data]
    assert [json.loads(d)["choices"] for d in data[:2]] == [
        [{"index": 0, "delta": {"content": "a"}}],
        [],
    ]
    assert data[2] == b"[DONE]" and events.text == b": a comment\r\n"


@pytest.mark.parametrize(
    ("pieces", "status", "said"),
    [
        ([json.dumps({"error": {"message": "too long"}}).encode()], 400, "400: too long"),
        ([json.dumps({"error": "no such model"}).encode()], 404, "404: no such model"),
        ([b"<h1>Bad\n gateway</h1>"], 502, "502: <h1>Bad gateway</h1>"),
        ([], 503, "503"),
        ([chunk("a"), event({"error": {"message": "the engine stopped"}})], 200, "the engine stop"),
        ([chunk("a")], 200, "the stream ended without [DONE]"),
        ([chunk("a"), (0, None)], 200, "peer closed connection without sending"),
        ([b"data: {]\n\n", DONE], 200, "an event that is not JSON: b'{]'"),
        ([DONE], 200, "an answer without text"),
    ],
)
async def test_a_failure_is_said(pieces, status, said):
    async with answering(*pieces, status=status) as server:
        outcome = await outcome_of(server)
    assert outcome.error is not None and outcome.error.startswith(said)


async def test_a_time_out_and_no_server_are_failures():
    async with answering(chunk("a"), (5, DONE)) as server:
        outcome = await outcome_of(server, timeout=0.1)
    assert outcome.error == "timed out" and len(outcome.pieces) == 1
    gone = await outcome_of(server)
    assert gone.error and "Connect" in gone.error


async def test_connections_are_used_again_and_one_that_was_closed_is_replaced():
    async with answering(chunk("a"), usage(1, 1), DONE) as server:
        target = HttpTarget(TargetAddress.parse(server.url), "boat")
        for _ in range(3):
            assert (await ask(target, Ask(body=CHAT))).error is None
        assert server.connections == 1
        (idle,) = target._idle
        idle._transport.close()  # as a server does with one that is idle for long
        assert (await ask(target, Ask(body=CHAT))).error is None
        assert server.connections == 2
        await target.close()


async def test_a_request_is_repeated_to_a_server_that_ends_an_idle_connection_as_it_comes():
    async with answering(chunk("a"), usage(1, 1), DONE) as server:
        target = HttpTarget(TargetAddress.parse(server.url), "boat")
        assert (await ask(target, Ask(body=CHAT))).error is None
        (idle,) = target._idle
        again = asyncio.create_task(ask(target, Ask(body=CHAT)))
        while idle in target._idle:
            await asyncio.sleep(0)
        idle.eof_received()  # the end had been under way when the request was written
        assert (await again).error is None
        assert server.connections == 2
        await target.close()


async def test_models():
    async with answering() as server:
        target = HttpTarget(TargetAddress.parse(f"{server.url}/v1/"))
        assert await target.models() == ["first", "second"]
        assert server.heads[0].startswith("GET /v1/models ")
        await target.close()
    with pytest.raises(ModelError, match="cannot be reached"):
        await target.models()


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://localhost/", "http://localhost:80/v1"),
        ("https://api.example/openai/v1/", "https://api.example:443/openai/v1"),
        ("http://[::1]:81", "http://[::1]:81/v1"),
    ],
)
def test_addresses(typed, address):
    assert str(TargetAddress.parse(typed)) == address


@pytest.mark.parametrize("typed", ["ftp://a", "http://", "http://a:port"])
def test_no_addresses(typed):
    with pytest.raises(UsageError, match=r"not an? (HTTP )?URL"):
        TargetAddress.parse(typed)
