"""Sends a load test's requests: in a closed loop, or at given times regardless of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from time import perf_counter

from .outcome import Ask, Done, Outcome, Target, ask


async def closed_loop(
    target: Target,
    asks: Iterator[Ask],
    *,
    concurrency: int,
    requests: int | None = None,
    seconds: float | None = None,
    done: Done = lambda outcome: None,
) -> list[Outcome]:
    """Keep `concurrency` requests running until `requests` were sent or `seconds` have passed.

    After `seconds` no request starts; running ones end and count.
    """
    outcomes: list[Outcome] = []
    end = None if seconds is None else perf_counter() + seconds
    source = islice(asks, requests)

    async def client() -> None:
        while end is None or perf_counter() < end:
            following = next(source, None)
            if following is None:
                return
            outcomes.append(await ask(target, following))
            done(outcomes[-1])

    await asyncio.gather(*(client() for _ in range(concurrency)))
    return outcomes


async def open_loop(
    target: Target,
    asks: Iterator[Ask],
    *,
    requests: int | None = None,
    seconds: float | None = None,
    done: Done = lambda outcome: None,
) -> list[Outcome]:
    """Send each request at its time, even if earlier ones are still running.

    Latency counts from that time, so a late client hides nothing. `seconds` works as in
    `closed_loop`.
    """
    begin = perf_counter()
    in_flight: list[asyncio.Task[Outcome]] = []
    for following in islice(asks, requests):
        if seconds is not None and following.at > seconds:
            break
        due = begin + following.at
        await asyncio.sleep(max(0.0, due - perf_counter()))
        task = asyncio.create_task(ask(target, following, due))
        task.add_done_callback(lambda t: done(t.result()) if not t.cancelled() else None)
        in_flight.append(task)
    return list(await asyncio.gather(*in_flight))
