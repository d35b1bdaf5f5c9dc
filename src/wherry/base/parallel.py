"""Work in several threads, for NumPy and compiled code, which run outside of Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache
from typing import TypeVar

from . import settings

Item = TypeVar("Item")
Result = TypeVar("Result")
_busy: ContextVar[bool] = ContextVar("busy", default=False)


def mapped(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return `work` of each item, in their order, by `threads` threads.

    The work has the caller's context, as NumPy's treatment of floating-point errors. Work that
    calls this function itself stays in its own thread.
    """
    queue = list(items)
    if len(queue) < 2 or _busy.get() or threads() < 2:
        return [work(item) for item in queue]
    reset = _busy.set(True)
    try:
        pool = _pool(os.getpid(), threads())
        started = [pool.submit(copy_context().run, work, item) for item in queue]
        return [each.result() for each in started]
    finally:
        _busy.reset(reset)


def threads() -> int:
    """Return WHERRY_THREADS, or the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return settings.threads() or cores


@cache
def _pool(_process: int, count: int) -> ThreadPoolExecutor:
    """Return the threads of a process; one that was forked has none of its parent's."""
    return ThreadPoolExecutor(count, "wherry")
