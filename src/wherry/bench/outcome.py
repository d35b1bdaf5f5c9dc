"""A request of a load test, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request to send, and when."""

    body: Mapping[str, Any]  # JSON body: "messages" or "prompt", and "max_tokens" for a limit
    at: float = 0.0  # seconds after the start, if the workload sets times


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The outcome of a request. Times are seconds of `perf_counter`."""

    due: float  # when the request should have been sent; latency counts from here
    sent: float = 0.0
    ended: float = 0.0
    pieces: list[float] = field(default_factory=list)  # arrival time of each piece of text
    prompt_tokens: int = 0
    cached_tokens: int = 0  # prompt tokens found in the server's prefix cache
    output_tokens: int = 0
    draft_tokens: int = 0  # draft tokens that the model verified, as far as the server says
    accepted_tokens: int = 0  # of these, accepted
    # whether the server reported counts; otherwise output_tokens counts pieces
    has_usage: bool = False
    error: str | None = None

    def count(self, usage: Mapping[str, Any]) -> None:
        """Read the token counts from a response's `usage`."""
        self.has_usage = True
        self.prompt_tokens = usage.get("prompt_tokens") or 0
        self.output_tokens = usage.get("completion_tokens") or 0
        self.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        details = usage.get("completion_tokens_details") or {}
        self.accepted_tokens = details.get("accepted_prediction_tokens") or 0
        rejected = details.get("rejected_prediction_tokens") or 0
        self.draft_tokens = self.accepted_tokens + rejected


class Target(Protocol):
    """Interface of what a load test sends requests to."""

    @property
    def name(self) -> str:
        """Return a name for display: URL and model."""

    async def ask(self, body: Mapping[str, Any], outcome: Outcome) -> None:
        """Send one request and record its events in `outcome`; an error is an outcome, too."""

    async def close(self) -> None:
        """Close all connections."""


async def ask(target: Target, ask: Ask, due: float | None = None) -> Outcome:
    """Send one request and return its outcome; `due` is its intended time, None: now."""
    now = perf_counter()
    outcome = Outcome(due=now if due is None else due, sent=now)
    await target.ask(ask.body, outcome)
    outcome.ended = perf_counter()
    if outcome.error is None and not outcome.pieces and not outcome.output_tokens:
        outcome.error = "an answer without text"
    if not outcome.has_usage:
        outcome.output_tokens = len(outcome.pieces)
    return outcome


Done = Callable[[Outcome], None]
