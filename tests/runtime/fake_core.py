"""A core in Python: batches, pages, limits and aborts as the real one has them, scripted tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wherry.errors import UsageError, WherryError
from wherry.runtime.core.interface import CoreStats, Event, Finish, Records, SamplingParams

from .records import params_of, records_of

PAGE_SIZE = 16
Script = Callable[[Sequence[int], SamplingParams, int], int]  # prompt, params, n-th -> token


@dataclass
class _Request:
    prompt: list[int]
    params: SamplingParams
    sampled: int = 0
    pages: int = field(default=0)


class FakeCore:
    """Steps when events are waited for, as fast as `step_seconds` lets it."""

    def __init__(
        self,
        script: Script,
        *,
        context: int = 512,
        vocab_size: int = 1024,
        max_batch: int = 16,
        pages: int = 1024,
        step_seconds: float = 0.0,
    ) -> None:
        self.metadata = {"context": context, "vocab_size": vocab_size}
        self.script = script
        self.context = context
        self.max_batch = max_batch
        self.step_seconds = step_seconds
        self.fail_with: str | None = None  # the next step fails: its requests end with ERROR
        self.break_with: str | None = None  # the next wait fails: the engine is gone
        self.closed = False
        self.added: list[tuple[list[int], SamplingParams]] = []
        self._pages_total = self._pages_free = pages
        self._waiting: dict[int, _Request] = {}
        self._running: dict[int, _Request] = {}
        self._events: list[Event] = []
        names = ("steps", "prefill_tokens", "decode_tokens", "finished", "failed_steps")
        self._counts = dict.fromkeys(names, 0)
        self._changed = threading.Condition()
        self._woken = False
        self._started = False

    def start(self) -> None:
        self._started = True

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        with self._changed:
            assert not self.closed
            if not 1 <= len(tokens) < self.context:
                raise UsageError(f"{len(tokens)} tokens; the context is {self.context}")
            assert request_id not in self._waiting and request_id not in self._running
            self.added.append((list(tokens), params))
            self._waiting[request_id] = _Request(list(tokens), params)
            self._changed.notify_all()

    def add_record(self, request_id: int, tokens, n: int, params) -> None:
        self.add(request_id, tokens[:n], params_of(params.contents))

    def abort(self, request_id: int) -> None:
        with self._changed:
            assert not self.closed
            self._waiting.pop(request_id, None)
            if request := self._running.pop(request_id, None):
                self._free(request)
                self._events.append(Event(request_id, -1, Finish.ABORTED, 0.0))
                self._changed.notify_all()

    def wait(self, timeout_ms: int) -> Records:
        return records_of(self._wait(timeout_ms))

    def _wait(self, timeout_ms: int) -> list[Event]:
        end = time.monotonic() + timeout_ms / 1000
        with self._changed:
            assert self._started and not self.closed
            while True:
                if self.break_with:
                    raise WherryError(self.break_with)
                if self._woken:
                    self._woken = False
                    return []
                if not self._events and (self._waiting or self._running):
                    self._step()
                if self._events:
                    events, self._events = self._events, []
                    break
                if not self._changed.wait(end - time.monotonic()):
                    return []
        if self.step_seconds:
            time.sleep(self.step_seconds)
        return events

    def _step(self) -> None:
        self._counts["steps"] += 1
        self._counts["failed_steps"] = self._counts["failed_steps"] + 1 if self.fail_with else 0
        for request_id in list(self._waiting)[: self.max_batch - len(self._running)]:
            request = self._running[request_id] = self._waiting.pop(request_id)
            self._counts["prefill_tokens"] += len(request.prompt)
            self._events += self._prompt_events(request_id, request)
        for request_id, request in list(self._running.items()):
            event = self._sample(request_id, request)
            self._events.append(event)
            if event.finish:
                del self._running[request_id]
                self._free(request)
        self.fail_with = None

    def _prompt_events(self, request_id: int, request: _Request) -> list[Event]:
        """Logprobs that tell the token's place: -1.25 for the second."""
        if (n := request.params.prompt_logprobs) < 0:
            return []
        return [
            Event(
                request_id,
                token,
                Finish.RUNNING,
                -i - 0.25,
                tuple((token + j, -i - 0.25 - j) for j in range(n)),
                prompt=True,
            )
            for i, token in enumerate(request.prompt)
            if i
        ]

    def _sample(self, request_id: int, request: _Request) -> Event:
        if self.fail_with:
            return Event(request_id, -1, Finish.ERROR, 0.0, (), self.fail_with)
        token = self.script(request.prompt, request.params, request.sampled)
        request.sampled += 1
        self._counts["decode_tokens"] += 1
        needed = -(-(len(request.prompt) + request.sampled) // PAGE_SIZE)
        self._pages_free -= needed - request.pages
        request.pages = needed
        finish = Finish.RUNNING
        complete = request.params.grammar is not None and self.script.accept(request.params, token)
        if token in request.params.stop_ids or complete:
            finish = Finish.STOP
        elif request.sampled == request.params.max_tokens or (
            len(request.prompt) + request.sampled == self.context
        ):
            finish = Finish.LENGTH
        top = tuple((token + i, -0.5 - i) for i in range(request.params.top_logprobs))
        return Event(request_id, token, finish, -0.5, top)

    def _free(self, request: _Request) -> None:
        self._pages_free += request.pages
        self._counts["finished"] += 1

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def stats(self) -> CoreStats:
        with self._changed:
            return CoreStats(
                **self._counts,
                waiting=len(self._waiting),
                running=len(self._running),
                pages_total=self._pages_total,
                pages_free=self._pages_free,
                page_size=PAGE_SIZE,
            )

    def reset(self) -> None:
        for request_id in [*self._waiting, *self._running]:
            self.abort(request_id)

    def clear_cache(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def saying(ids: Sequence[int], then: int) -> Script:
    """Every request's output is `ids`, then `then` for ever (an eos id, usually)."""
    return lambda prompt, params, n: ids[n] if n < len(ids) else then
