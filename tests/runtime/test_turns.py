"""How much of a turn of the loop answers take, however many there are: counted, not timed."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from wherry.runtime.core.interface import Event, Finish
from wherry.runtime.host.sinks import AsyncSink
from wherry.runtime.host.turns import PER_TURN, Turns, turns_of
from wherry.runtime.server.models import OneModel
from wherry.runtime.server.pipeline import Body, Pipeline


class Clock:
    """Counts turns of the running loop."""

    def __init__(self):
        self.turn = 0
        self._loop = asyncio.get_running_loop()
        self._tick()

    def _tick(self):
        self.turn += 1
        self._next = self._loop.call_soon(self._tick)

    def stop(self):
        self._next.cancel()


@pytest.mark.parametrize("work", [1, 7, 64, 1000])
async def test_work_is_spread_over_turns(work):
    turns, clock = Turns(), Clock()
    done: Counter[int] = Counter()

    async def ask(times: int):
        for _ in range(times):
            await turns.enter(work)
            done[clock.turn] += work

    await asyncio.gather(*(ask(5) for _ in range(50)))
    clock.stop()
    assert done.total() == 250 * work
    assert max(done.values()) <= max(2 * PER_TURN, work)
    assert len(done) <= 4 * (250 * work) / PER_TURN + 2  # and no turn is left empty


async def test_first_come_first_served_and_the_cancelled_are_no_hole():
    turns, order = Turns(), []

    async def ask(name: int):
        await turns.enter(PER_TURN)
        order.append(name)

    tasks = [asyncio.create_task(ask(i)) for i in range(20)]
    await asyncio.sleep(0)
    for i in (3, 4, 11):
        tasks[i].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [i for i in range(20) if i not in (3, 4, 11)]


async def test_one_alone_does_not_wait():
    turns, clock = Turns(), Clock()
    await turns.enter(1000)
    assert clock.turn == 1
    clock.stop()


async def test_sinks_of_one_loop_share_its_turns():
    """Forty streams, each with a hundred messages that came at once."""
    sinks, clock = [AsyncSink() for _ in range(40)], Clock()
    taken: Counter[int] = Counter()

    async def read(sink: AsyncSink):
        left = 100
        while left:
            events = await sink.take()
            left -= len(events)
            taken[clock.turn] += len(events)

    for sink in sinks:
        sink.deliver([Event(1, 5, Finish.RUNNING, -0.5)] * 100)
    await asyncio.gather(*map(read, sinks))
    clock.stop()
    assert taken.total() == 4000
    assert max(taken.values()) <= 2 * PER_TURN
    assert turns_of(asyncio.get_running_loop()) is sinks[0]._turns


async def test_requests_that_begin_at_once_are_spread(make):
    pipeline, clock = Pipeline(OneModel(make(), "m")), Clock()
    begun: Counter[int] = Counter()

    def parse(fields):
        begun[clock.turn] += 1
        return Body(fields, None, 1, "m", False)

    async with AsyncExitStack() as stack:
        await asyncio.gather(*(pipeline._leased(b"{}", parse, stack) for _ in range(40)))
    clock.stop()
    assert begun.total() == 40
    assert max(begun.values()) <= 4


async def test_an_error_comes_after_all_events():
    sink = AsyncSink()
    sink.deliver([Event(1, 5, Finish.RUNNING, -0.5)] * 100)
    sink.deliver(RuntimeError("gone"))
    assert len(await sink.take()) + len(await sink.take()) == 100
    with pytest.raises(Exception, match="gone"):
        await sink.take()
