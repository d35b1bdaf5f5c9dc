"""One request: what is asked, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request, to be made."""

    body: Mapping[str, Any]  # "messages" or "prompt", and "max_tokens" if there is a limit
    at: float = 0.0  # seconds after the beginning, where the workload has times


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One request that was made. Times are seconds of `perf_counter`."""

    due: float  # when it should have been sent; waiting counts from here
    sent: float = 0.0
    ended: float = 0.0
    pieces: list[float] = field(default_factory=list)  # when each piece of text came
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt
    output_tokens: int = 0
    has_usage: bool = False  # the counts are the server's; else output_tokens counts pieces
    error: str | None = None

    def count(self, usage: Mapping[str, Any]) -> None:
        """Take the counts of an answer's `usage`."""
        self.has_usage = True
        self.prompt_tokens = usage.get("prompt_tokens") or 0
        self.output_tokens = usage.get("completion_tokens") or 0
        self.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0


class Target(Protocol):
    """Who is asked."""

    @property
    def name(self) -> str:
        """For people: a URL and a model."""

    async def ask(self, body: Mapping[str, Any], outcome: Outcome) -> None:
        """Make one request, and write what happens into `outcome`; an error is an outcome, too."""

    async def close(self) -> None:
        """End all connections."""


async def ask(target: Target, ask: Ask, due: float | None = None) -> Outcome:
    """Make one request; `due` is when it should have been sent, None: now."""
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
