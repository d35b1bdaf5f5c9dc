"""Runs work about grammars on a thread of its own, in turns between tenants.

A client's schema may take seconds, so nothing else may wait for it: neither requests without one,
nor another tenant's schema for more than a turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from wherry.errors import WherryError

from ..errors import BusyError

PER_TENANT = 128  # pieces of work that wait for one tenant, at most
IN_ALL = 1024  # pieces of work that wait, at most

Result = TypeVar("Result")


class TenantTurns:
    """A thread that serves tenants in turn, each in the order of arrival; usable from any thread.

    Args:
        name: of the thread.
        stack: bytes of the thread's stack; 0: the platform's default.
        bounded: whether PER_TENANT and IN_ALL hold; else connections alone bound what waits.
    """

    def __init__(self, name: str, stack: int = 0, *, bounded: bool = True) -> None:
        self._name, self._stack, self._bounded = name, stack, bounded
        self._waiting: dict[int, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, tenant: int, work: Callable[[], Result]) -> Future[Result]:
        """Queue work and return its result's future; cancelling that leaves the queue.

        Raises:
            BusyError: too much waits already, for this tenant or in all.
            WherryError: the thread has been ended.
        """
        future: Future[Result] = Future()
        with self._changed:
            if self._closed:
                raise WherryError("The engine is closed")
            own = self._waiting.get(tenant, ())
            waiting = sum(map(len, self._waiting.values()))
            if self._bounded and (len(own) >= PER_TENANT or waiting >= IN_ALL):
                raise BusyError(
                    f"{len(own)} grammars of this client wait to be compiled, {waiting} in all; "
                    f"accepted are {PER_TENANT} and {IN_ALL}. Ask again later"
                )
            self._waiting.setdefault(tenant, deque()).append((future, work))
            if self._thread is None:
                self._thread = self._started()
            self._changed.notify()
        return future

    def of(self, tenant: int) -> Executor:
        """Return an executor that submits the work of one tenant."""
        return _OfTenant(self, tenant)

    def close(self) -> None:
        """End the thread after its running work; what waits fails. Idempotent."""
        with self._changed:
            self._closed = True
            waiting = [future for line in self._waiting.values() for future, _ in line]
            self._waiting.clear()
            self._changed.notify()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(WherryError("The engine is closed"))

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        before = threading.stack_size(self._stack)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
        return thread

    def _run(self) -> None:
        while (item := self._next()) is not None:
            future, work = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as e:  # the waiting caller gets every error
                future.set_exception(e)
            else:
                future.set_result(result)
            del future, work, item

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Wait for work and take it from the tenant whose turn it is; None: closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            tenant = next(iter(self._waiting))
            line = self._waiting.pop(tenant)
            item = line.popleft()
            if line:
                self._waiting[tenant] = line  # behind the other tenants
            return item


class _OfTenant(Executor):
    def __init__(self, turns: TenantTurns, tenant: int) -> None:
        self._turns, self._tenant = turns, tenant

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._turns.submit(self._tenant, lambda: fn(*args, **kwargs))


# Schemas are audited in Python, which holds the GIL, so that one thread of the process suffices.
# Every constrained request passes, also those whose grammar is compiled: they take milliseconds.
AUDITS = TenantTurns("wherry-audit", bounded=False)
