"""Runs one load test from its plan to its outcomes: prompt sizing, warm-up, load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from wherry.errors import UsageError

from . import trace, workload
from .load import closed_loop, open_loop
from .outcome import Ask, Outcome, Target
from .workload import Lengths, RequestShape, Sizing

DEFAULT_REQUESTS = 32
Progress = Callable[[str, int, int], None]  # arguments: phase, requests done, requests in total

# Request fields that make a response exactly as long as requested: vLLM's names, which llama.cpp's
# server and Wherry accept, too.
_NO_STOP: Mapping[str, Any] = {"ignore_eos": True}


class BenchTarget(Target, Protocol):
    """A target that reports which fields it accepts."""

    async def takes(self, body: Mapping[str, Any]) -> bool:
        """Return whether the target accepts a request; False if it rejects a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """The requests of a load test. At most one of `concurrency`, `rate` and `trace` is set."""

    chat: bool = True
    # requests running at the same time; 1 if `rate` and `trace` are not set, either
    concurrency: int | None = None
    rate: float | None = None  # requests per second
    trace: Path | None = None
    speed: float = 1.0  # factor by which a trace runs faster
    # number of requests; None: DEFAULT_REQUESTS, the whole trace, or until `seconds`
    requests: int | None = None
    seconds: float | None = None  # seconds after which no request starts
    prompt_tokens: Lengths = Lengths(128, 128)  # noqa: RUF009  # it is frozen
    output_tokens: Lengths = Lengths(64, 64)  # noqa: RUF009
    may_stop: bool = False
    warmup: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        given = [n for n in ("concurrency", "rate", "trace") if getattr(self, n) is not None]
        if len(given) > 1:
            raise UsageError(
                f"--{' and --'.join(given)} exclude each other: requests run concurrently, or "
                "come at random times, or at those of a trace"
            )

    def record(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {n: str(v) if isinstance(v, Lengths | Path) else v for n, v in values.items()}

    def __str__(self) -> str:
        """Describe the plan in a few words."""
        how = f"{self.concurrency or 1} at one time"
        if self.rate is not None:
            how = f"{self.rate:g} per second at random times"
        if self.trace is not None:
            how = f"trace {self.trace.name}" + (f" x{self.speed:g}" if self.speed != 1 else "")
        return how


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a load test."""

    outcomes: list[Outcome]  # outcomes of all requests after the warm-up
    exact: bool  # whether responses were as long as requested


async def measure(
    target: BenchTarget, plan: LoadPlan, progress: Progress | None = None
) -> Measured:
    """Run the load test of a plan.

    Raises:
        UsageError: the trace cannot be read, or the target does not respond.
    """
    report = progress or (lambda what, done, total: None)
    rows = trace.read(plan.trace)[: plan.requests] if plan.trace else []
    shape = await _shape(target, plan)
    size = await workload.sizing(target, shape, plan.seed)
    await _warm_up(target, plan, shape, size, report)
    total = len(rows) or plan.requests or (None if plan.seconds else DEFAULT_REQUESTS)
    done = 0

    def one(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if total:
            report("bench", done, total)

    limits: dict[str, Any] = {"requests": total, "seconds": plan.seconds, "done": one}
    asks = _asks(plan, shape, size, rows)
    if plan.rate is None and not rows:
        outcomes = await closed_loop(target, asks, concurrency=plan.concurrency or 1, **limits)
    else:
        outcomes = await open_loop(target, asks, **limits)
    return Measured(outcomes, not plan.may_stop and shape.extra is not None)


async def _shape(target: BenchTarget, plan: LoadPlan) -> RequestShape:
    """Return the common part of all requests, with a fixed response length if possible."""
    plain = RequestShape(chat=plan.chat)
    exact = RequestShape(chat=plan.chat, extra=_NO_STOP)
    if plan.may_stop or not await target.takes(exact.body("the", 1)):
        return plain
    return exact


async def _warm_up(
    target: BenchTarget, plan: LoadPlan, shape: RequestShape, size: Sizing, report: Progress
) -> None:
    def done(outcome: Outcome) -> None:
        report("warm up", 1, 1)

    asks = workload.random_asks(
        shape, size, plan.prompt_tokens, plan.output_tokens, f"warm-up {plan.seed}"
    )
    clients = min(plan.concurrency or 1, plan.warmup)
    if clients:
        await closed_loop(target, asks, concurrency=clients, requests=plan.warmup, done=done)


def _asks(
    plan: LoadPlan, shape: RequestShape, size: Sizing, rows: list[dict[str, Any]]
) -> Iterator[Ask]:
    if rows:
        return trace.asks(rows, shape, size, plan.output_tokens.high, plan.speed, plan.seed)
    asks = workload.random_asks(shape, size, plan.prompt_tokens, plan.output_tokens, plan.seed)
    return asks if plan.rate is None else workload.at_rate(asks, plan.rate, plan.seed)
