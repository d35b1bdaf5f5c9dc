"""AsyncMLCEngine: the same answers, and cancellation."""

from __future__ import annotations

import asyncio
import time

import pytest

from wherry.errors import WherryError
from wherry.runtime import AsyncMLCEngine, MLCEngine, RequestError
from wherry.runtime.core.interface import SamplingParams

from .conftest import core_of

TEXT = "Hello, wörld 🎉!"
HI = [{"role": "user", "content": "the cat"}]


@pytest.fixture
def engine(make):
    return AsyncMLCEngine.of(make(TEXT))


@pytest.fixture
def endless(make):
    return AsyncMLCEngine.of(make(None, context=1_000_000, pages=100_000, step_seconds=0.001))


async def wait_free(engine, seconds=5.0):
    end = time.monotonic() + seconds
    while (stats := engine.stats()).pages_free < stats.pages_total or stats.running:
        assert time.monotonic() < end, stats
        await asyncio.sleep(0.002)


async def test_answers_are_those_of_the_synchronous_engine(engine):
    other = MLCEngine.of(engine.loaded)
    answer = await engine.chat.completions.create(messages=HI, n=2)
    same = other.chat.completions.create(messages=HI, n=2)
    assert answer.choices == same.choices
    assert answer.usage == same.usage
    answer = await engine.completions.create(prompt=["a", "b"], max_tokens=3, logprobs=1)
    assert (
        answer.choices
        == other.completions.create(prompt=["a", "b"], max_tokens=3, logprobs=1).choices
    )


async def test_stream(engine):
    stream = await engine.chat.completions.create(messages=HI, stream=True)
    assert "".join([c.choices[0].delta.content or "" async for c in stream]) == TEXT
    async with await engine.completions.create(prompt="a", stream=True) as stream:
        assert [c.choices[0].text async for c in stream]


async def test_a_late_reader_gets_all_that_is_ready(engine):
    stream = await engine.chat.completions.create(messages=HI, stream=True)
    await asyncio.sleep(0.2)
    assert "".join([c.choices[0].delta.content or "" async for c in stream]) == TEXT


async def test_cancelling_frees_the_request(endless):
    task = asyncio.create_task(endless.chat.completions.create(messages=HI))
    while not endless.stats().running:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_free(endless)


async def test_cancelling_before_the_request_is_queued_frees_it_too(endless, monkeypatch):
    core, add = core_of(endless.loaded), core_of(endless.loaded).add
    monkeypatch.setattr(core, "add", lambda *a: (time.sleep(0.05), add(*a)))
    task = asyncio.create_task(endless.chat.completions.create(messages=HI))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.1)
    assert core.added
    await wait_free(endless)


async def test_leaving_a_stream_frees_the_request(endless):
    async with await endless.chat.completions.create(messages=HI, stream=True) as stream:
        async for _ in stream:
            break
    await wait_free(endless)
    dropped = await endless.chat.completions.create(messages=HI, stream=True)
    del dropped
    await wait_free(endless)
    task = asyncio.create_task(anext(await endless.completions.create(prompt="a", stream=True)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await wait_free(endless)


async def test_generate(endless):
    events = [e async for e in endless.generate([5], SamplingParams(max_tokens=4))]
    assert len(events) == 4
    begun = endless.generate([5], SamplingParams())
    await anext(begun)
    await begun.aclose()
    await wait_free(endless)


async def test_errors(engine):
    with pytest.raises(RequestError, match="prompt is empty"):
        await engine.completions.create(prompt="")
    core_of(engine.loaded).fail_with = "the device is gone"
    with pytest.raises(WherryError, match="the device is gone"):
        await engine.chat.completions.create(messages=HI)
    async with engine:
        pass
    with pytest.raises(WherryError, match="closed"):
        await engine.chat.completions.create(messages=HI)


def test_two_event_loops_share_an_engine(engine):
    async def ask():
        return await engine.chat.completions.create(messages=HI)

    for _ in range(2):
        assert asyncio.run(ask()).choices[0].message.content == TEXT
