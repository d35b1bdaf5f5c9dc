"""One running API request: all its choices, from the core's events to pieces of text.

The synchronous and the asynchronous engine differ only in how they wait for events.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from ..core.dispatcher import Dispatcher, Sink
from ..core.interface import Event
from ..request.plan import RequestPlan
from ..text.stop_strings import StopAutomaton
from ..text.tokenizer import Tokenizer
from .assembler import Assembler
from .delta import Delta
from .shapes import CompletionTokensDetails, FinishReason, PromptTokensDetails, Timings, Usage


class Generation:
    """Submits a plan and turns its events into deltas.

    Args:
        soon: whether `close` leaves the abort to the poller's thread, as callers on an event loop
            need.

    Attributes:
        first_at: the time.monotonic() at which the first events arrived; None before.

    Raises:
        WherryError: the engine is closed, has failed, or refuses the request.
    """

    def __init__(
        self,
        plan: RequestPlan,
        tokenizer: Tokenizer,
        dispatcher: Dispatcher,
        sink: Sink,
        *,
        soon: bool = False,
    ) -> None:
        self.plan = plan
        self.tokenizer = tokenizer
        self._abort = dispatcher.abort_soon if soon else dispatcher.abort
        stops = StopAutomaton(plan.stops, keeps=plan.keeps_stops)
        choices = [Assembler(job, plan, tokenizer, stops) for job in plan.jobs]
        self._choices = dict(zip(dispatcher.submit(plan.jobs, sink), choices, strict=True))
        self._open = set(self._choices)
        self.first_at: float | None = None
        self._last_at = 0.0

    @property
    def finishes(self) -> list[FinishReason | None]:
        """Return why each choice ended; None for one that runs or was aborted."""
        return [choice.finish for choice in self._choices.values()]

    @property
    def token_seconds(self) -> float:
        """Return the seconds from the first events to the last."""
        return self._last_at - self.first_at if self.first_at else 0.0

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Return the seconds of queue, prompt and output so far.

        Each is the maximum over the choices.
        """
        queue, prompt, output = zip(*(c.seconds for c in self._choices.values()), strict=True)
        return max(queue), max(prompt), max(output)

    @property
    def longest(self) -> int:
        """Return the number of tokens so far of the longest choice."""
        return max(choice.sampled for choice in self._choices.values())

    @property
    def done(self) -> bool:
        """Tell whether every choice has ended."""
        return not self._open

    @property
    def usage(self) -> Usage:
        """Return the token counts so far."""
        choices = self._choices.values()
        sampled = sum(choice.sampled for choice in choices)
        prompt = self.plan.prompt_tokens
        accepted = sum(choice.accepted for choice in choices)
        drafted = sum(choice.drafted for choice in choices)
        return Usage(
            prompt,
            sampled,
            prompt + sampled,
            # The first choice computed the prompt that the others found in the cache.
            PromptTokensDetails(sum(c.cached for c in choices if c.index % self.plan.n == 0)),
            CompletionTokensDetails(
                accepted, drafted - accepted, sum(choice.reasoning for choice in choices)
            ),
        )

    @property
    def timings(self) -> Timings:
        """Return the times so far; each is the maximum over the choices."""
        choices = self._choices.values()
        queue, prompt, output = self.seconds
        cached = sum(c.cached for c in choices if c.index % self.plan.n == 0)
        sampled = sum(choice.sampled for choice in choices)
        return Timings.of(queue, cached, self.plan.prompt_tokens - cached, prompt, sampled, output)

    def push(self, events: Sequence[Event]) -> list[Delta]:
        """Process events and return a delta for each open choice that has one.

        Raises:
            WherryError: the core failed on a request.
        """
        self._last_at = time.monotonic()
        if self.first_at is None:
            self.first_at = self._last_at
        batches: defaultdict[int, list[Event]] = defaultdict(list)
        for event in events:
            batches[event.id].append(event)
        deltas = []
        for request_id, batch in batches.items():
            if request_id not in self._open:
                continue
            choice = self._choices[request_id]
            deltas.append(choice.push(batch))
            if choice.finish is not None:
                self._open.discard(request_id)
                if choice.must_abort:
                    self._abort([request_id])
        return deltas

    def close(self) -> None:
        """Abort the choices that still run; idempotent."""
        self._abort(sorted(self._open))
        self._open.clear()
