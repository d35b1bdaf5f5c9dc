"""What Wherry's part of Ray Serve does without Ray: prefixes, the choice of a replica, one call."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing
from itertools import takewhile
from pathlib import Path

import pytest

import wherry
from wherry.runtime import MLCEngine, create_app
from wherry.runtime.ray_serve.http_call import Head, HttpRequest, answers, check_health
from wherry.runtime.ray_serve.kept import Keepers, given, key, named
from wherry.runtime.ray_serve.last_word import last_word
from wherry.runtime.ray_serve.prefix_memory import PrefixMemory, best, hear, report
from wherry.runtime.ray_serve.prompt_prefix import BLOCK, MOST_BLOCKS, block_keys, unpacked

from .conftest import core_of

LONG = "A fox lives in the wood beside the river and sleeps until the evening. " * 4


def chat(*texts, **fields):
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return {"model": "demo", "messages": messages, **fields}


def shared(a, b) -> int:
    """Blocks at the beginning that two requests have in common."""
    pairs = zip(unpacked(block_keys(a)), unpacked(block_keys(b)), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def blocks(request) -> int:
    return len(unpacked(block_keys(request)))


def test_a_second_turn_begins_with_all_blocks_of_the_first():
    first, second = chat(LONG), chat(LONG, "Does it?", "Yes. And then?")
    assert shared(first, second) == blocks(first) >= len(LONG) // BLOCK
    assert blocks(second) > blocks(first)


@pytest.mark.parametrize(
    "a, b",
    [
        (chat(LONG), chat(LONG, cache_salt="tenant")),
        (chat(LONG, cache_salt="a"), chat(LONG, cache_salt="b")),
        (chat(LONG), {**chat(LONG), "model": "another"}),
        (chat("B" + LONG), chat("C" + LONG)),
        ({"prompt": list(range(1000))}, {"prompt": list(range(1, 1001))}),
    ],
)
def test_what_shares_no_cache_shares_no_block(a, b):
    assert blocks(a) > 2 and blocks(b) > 2
    assert shared(a, b) == 0


def test_what_does_not_belong_to_the_prompt_changes_no_block():
    same = chat(LONG, temperature=0.5, stream=True, max_tokens=7)
    assert block_keys(chat(LONG)) == block_keys(same)
    marked = chat(LONG)
    marked["messages"][0]["cache_control"] = {"type": "ephemeral"}
    assert block_keys(chat(LONG)) == block_keys(marked)


@pytest.mark.parametrize(
    "request_",
    [
        {"model": "m", "system": LONG, "messages": [{"role": "user", "content": "Hi"}]},
        {
            "model": "m",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": LONG}]}],
        },
        {"model": "m", "prompt": LONG},
        {"model": "m", "prompt": [LONG, "another"]},
        {"model": "m", "prompt": list(range(500))},
        {"model": "m", "instructions": LONG, "input": "Hi"},
        {"model": "m", "messages": [{"role": "user", "content": "half \ud800 of a pair " + LONG}]},
    ],
)
def test_prompts_of_all_protocols_have_blocks(request_):
    assert blocks(request_) >= 4


@pytest.mark.parametrize("request_", [None, [], "text", 5, {}, {"messages": None}, {"n": 2}])
def test_what_has_no_prompt_has_no_blocks(request_):
    assert block_keys(request_) == b""


def test_the_number_of_blocks_is_bounded():
    assert blocks({"prompt": "x" * (BLOCK * MOST_BLOCKS * 3)}) == MOST_BLOCKS
    assert blocks({"prompt": list(range(10**6))}) == MOST_BLOCKS
    assert blocks(chat(*["x" * BLOCK] * (2 * MOST_BLOCKS))) == MOST_BLOCKS


def test_memory_finds_the_longest_prefix_and_forgets_ends_first():
    memory = PrefixMemory[str](blocks=6)
    memory.note("a", [1, 2, 3, 4])
    memory.note("b", [1, 2, 9])
    assert memory.matches([1, 2, 3, 5], ["a", "b", "c"]) == {"a": 3, "b": 2}
    assert memory.matches([7, 1, 2], ["a", "b"]) == {}
    memory.note("a", [11, 12, 13])  # seven blocks: the end of the older prompt goes
    assert memory.matches([1, 2, 3, 4], ["a"]) == {"a": 3}
    assert memory.matches([11, 12, 13], ["a"]) == {"a": 3}
    memory.note("a", [1, 2, 3])  # used again, so the other's end is the oldest
    memory.note("a", [21])
    assert memory.matches([1, 2, 3], ["a"]) == {"a": 3}
    assert memory.matches([11, 12, 13], ["a"]) == {"a": 2}


def test_memory_is_bounded_by_what_a_replica_holds():
    memory = PrefixMemory[str](blocks=100)
    memory.note("a", range(1000))
    assert memory.matches(range(1000), ["a"]) == {"a": 100}
    memory.resize("a", 10)
    assert len(memory) == 10
    memory.resize("a", 10**9)  # what a replica says does not lift the limit
    for turn in range(50):
        memory.note("a", range(turn, 3000))
    assert len(memory) == 100
    memory.note("b", [1])
    memory.keep(["b"])
    assert len(memory) == 1


@pytest.mark.parametrize(
    "matches, loads, chosen",
    [
        ({"a": 5, "b": 3}, {"a": 0, "b": 0, "c": 0}, ["a"]),
        ({"a": 5, "b": 5}, {"a": 0, "b": 0, "c": 0}, ["a", "b"]),  # the idler is asked
        ({"a": 5, "b": 3}, {"a": 2, "b": 0, "c": 0}, ["a"]),  # busier, within the slack
        ({"a": 5, "b": 3}, {"a": 3, "b": 0, "c": 0}, ["b"]),  # too busy for its prefix
        ({"a": 5, "b": 3}, {"a": 9, "b": 9, "c": 0}, []),
        ({"a": 5}, {"a": None, "c": 0}, ["a"]),
        ({"gone": 5}, {"a": 0}, []),
        ({}, {"a": 0}, []),
        ({}, {}, []),
    ],
)
def test_cache_first_load_second(matches, loads, chosen):
    assert best(matches, loads, slack=2) == chosen


def post(path, body) -> HttpRequest:
    headers = ((b"content-type", b"application/json"), (b"connection", b"keep-alive"))
    return HttpRequest("POST", path, b"", headers, json.dumps(body).encode())


async def pieces_of(app, request, interval=0.0):
    return [piece async for piece in answers(app, request, lambda: interval)]


@pytest.fixture
def app(make):
    return create_app(MLCEngine.of(make()))


async def test_an_answer_is_the_servers_own(app):
    head, *rest = await pieces_of(app, post("/v1/completions", {"prompt": "Hi", "max_tokens": 99}))
    assert head.status == 200 and not rest
    assert json.loads(head.body)["choices"][0]["text"] == "Hello, wörld 🎉!"
    (head,) = await pieces_of(app, post("/v1/completions", {"prompt": None}))
    assert head.status == 400
    (head,) = await pieces_of(app, HttpRequest("GET", "/health", b"", (), b""))
    assert json.loads(head.body) == {"status": "ok"}


async def test_a_stream_is_complete_in_few_pieces(make):
    app = create_app(MLCEngine.of(make(step_seconds=0.005)))
    ask = post("/v1/completions", {"prompt": "Hi", "stream": True, "max_tokens": 99})
    each = await pieces_of(app, ask)
    few = await pieces_of(app, ask, interval=10.0)
    assert len(each) > 5
    assert len(few) == 2  # the first token at once, then all others with the end

    def texts(pieces):
        events = b"".join([pieces[0].body, *pieces[1:]]).split(b"\n\n")
        assert events[-2:] == [b"data: [DONE]", b""]
        return [json.loads(e.removeprefix(b"data: "))["choices"][0]["text"] for e in events[:-2]]

    assert "".join(texts(few)) == "".join(texts(each)) == "Hello, wörld 🎉!"


async def test_leaving_a_stream_frees_its_request(make):
    model = make(None, step_seconds=0.005)
    ask = post("/v1/completions", {"prompt": "Hi", "stream": True, "max_tokens": 400})
    async with aclosing(answers(create_app(MLCEngine.of(model)), ask, lambda: 0.0)) as pieces:
        assert isinstance(await anext(pieces), Head)
    for _ in range(400):
        if not core_of(model).stats().running:
            break
        await asyncio.sleep(0.005)
    assert core_of(model).stats().running == 0


async def test_an_application_that_breaks_is_an_error():
    async def none(scope, receive, send):
        pass

    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await asyncio.sleep(0.01)
        raise ValueError("the other half")

    with pytest.raises(RuntimeError, match="ended"):
        await pieces_of(none, post("/", {}))
    got = []
    with pytest.raises(RuntimeError, match="in the middle"):
        async for piece in answers(half, post("/", {}), lambda: 0.0):
            got.append(piece)
    assert got == [Head(200, (), b"half")]


async def test_a_failed_engine_is_not_healthy(make):
    model = make(None)
    app = create_app(MLCEngine.of(model))
    await check_health(app)
    core_of(model).break_with = "broken"
    await pieces_of(app, post("/v1/completions", {"prompt": "a"}))
    with pytest.raises(RuntimeError, match=r"503.*failed"):
        await check_health(app)


def test_routers_hear_what_replicas_were_sent():
    sent, memory = PrefixMemory[str](blocks=50), PrefixMemory[str](blocks=100)
    sent.note("me", range(100, 120))
    sent.note("me", range(5))
    hear(memory, "a", report(sent.newest("me", 20), cache_tokens=16 * 18))
    assert memory.matches(range(5), ["a"]) == {"a": 5}
    assert memory.matches(range(100, 120), ["a"]) == {"a": 13}  # 18 blocks are all its cache holds
    hear(memory, "b", {})  # has not said anything yet
    hear(memory, "c", report([], cache_tokens=None))
    assert len(memory) == 18


@pytest.mark.parametrize(
    "path, body, name",
    [
        ("/v1/responses", {"previous_response_id": "resp_1", "input": "Hi"}, "resp_1"),
        ("/v1/responses", {"conversation": "conv_1", "input": "Hi"}, "conv_1"),
        ("/v1/responses", {"conversation": {"id": "conv_1"}, "input": "Hi"}, "conv_1"),
        ("/v1/responses/resp_1/input_items", None, "resp_1"),
        ("/v1/conversations/conv_1", {"metadata": {}}, "conv_1"),
        ("/v1/responses", {"input": "Hi"}, None),
        ("/v1/responses", {"previous_response_id": 5}, None),
        ("/v1/chat/completions", {"previous_response_id": "resp_1"}, None),
        ("/v1/responses/compact", {"previous_response_id": "resp_1"}, "resp_1"),
        ("/v1/responses/input_tokens", {"previous_response_id": "resp_1"}, "resp_1"),
        ("/v1/responses/compact", {}, None),
    ],
)
def test_what_a_request_wants_to_be_continued(path, body, name):
    assert named(path, body) == name


async def test_who_has_answered_is_who_keeps_it(app):
    created = await pieces_of(app, post("/v1/responses", {"input": "Hi"}))
    streamed = await pieces_of(app, post("/v1/responses", {"input": "Hi", "stream": True}))
    conversation = await pieces_of(app, post("/v1/conversations", {}))
    plain = await pieces_of(app, post("/v1/completions", {"prompt": "Hi"}))
    keepers = Keepers()
    for i, (path, (head, *_)) in enumerate(
        [
            ("/v1/responses", created),
            ("/v1/responses", streamed),
            ("/v1/conversations", conversation),
        ]
    ):
        keepers.note(f"replica {i}", given(path, head.body))
    assert given("/v1/completions", plain[0].body) == []
    ids = [
        json.loads(created[0].body)["id"],
        json.loads(streamed[0].body.split(b"data: ")[1].split(b"\n")[0])["response"]["id"],
        json.loads(conversation[0].body)["id"],
    ]
    there = [f"replica {i}" for i in range(3)]
    assert [keepers.of(key(name), there) for name in ids] == there
    assert keepers.of(key(ids[0]), there[1:]) is None  # it is gone
    other = Keepers()
    other.hear("replica 0", {"kept": keepers.newest("replica 0", 9)})
    assert other.of(key(ids[0]), there) == "replica 0"
    keepers.forget_others(["replica 1"])
    assert [keepers.of(key(name), there) for name in ids] == [None, "replica 1", None]


def test_the_last_word_of_a_stream():
    events = last_word("text/event-stream; charset=utf-8", "/v1/chat/completions")
    assert events.startswith(b"data: {") and events.endswith(b"\n\n")
    assert json.loads(events[6:])["error"]["code"] == "replica_lost"
    assert json.loads(last_word("application/x-ndjson", "/api/chat"))["error"]
    assert last_word("application/json", "/v1/chat/completions") is None


def test_the_package_does_not_import_ray():
    code = "import sys, wherry.runtime.server.app, wherry.cli; print('ray' in sys.modules)"
    env = {"PYTHONPATH": str(Path(wherry.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
    assert done.stdout.decode().strip() == "False", done.stderr.decode()
