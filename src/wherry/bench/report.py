"""Computes percentiles and rates of a load test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .outcome import Outcome

PERCENTILES = (50, 90, 99)
LATENCIES = {
    "ttft": "first token (TTFT)",  # time since the request was due
    "tpot": "each further token (TPOT)",  # mean over a request's tokens
    "itl": "between pieces (ITL)",  # a piece may contain several tokens
    "e2e": "whole answer (E2E)",
}


def ttft(outcome: Outcome) -> float | None:
    """Return seconds to the first piece of text; None if there is no text."""
    return outcome.pieces[0] - outcome.due if outcome.pieces else None


def tpot(outcome: Outcome) -> float | None:
    """Return mean seconds per token after the first; None for one token, or one piece."""
    if len(outcome.pieces) < 2 or outcome.output_tokens < 2:
        return None
    return (outcome.pieces[-1] - outcome.pieces[0]) / (outcome.output_tokens - 1)


def gaps(outcome: Outcome) -> Iterator[float]:
    """Yield seconds between consecutive pieces of text."""
    return (b - a for a, b in zip(outcome.pieces, outcome.pieces[1:], strict=False))


def latencies(outcomes: Sequence[Outcome]) -> dict[str, list[float]]:
    """Return latencies of the successful requests in milliseconds.

    The keys are those of LATENCIES.
    """
    complete = [o for o in outcomes if o.error is None]
    seconds: dict[str, Iterable[float | None]] = {
        "ttft": map(ttft, complete),
        "tpot": map(tpot, complete),
        "itl": (gap for o in complete for gap in gaps(o)),
        "e2e": (o.ended - o.due for o in complete),
    }
    return {name: [1e3 * v for v in values if v is not None] for name, values in seconds.items()}


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Return mean and percentiles, interpolated linearly; None for an empty list."""
    if not values:
        return None
    percentiles = np.percentile(values, PERCENTILES)
    named = {f"p{p}": round(float(v), 3) for p, v in zip(PERCENTILES, percentiles, strict=True)}
    return {"mean": round(float(np.mean(values)), 3), **named, "max": round(max(values), 3)}


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return all results of a load test as JSON values; times are in ms, except `seconds`.

    Tokens, rates and latencies are those of successful requests; `seconds` lasts from when the
    first request was due to the end of the last one.
    """
    complete = [o for o in outcomes if o.error is None]
    seconds = max(o.ended for o in outcomes) - min(o.due for o in outcomes) if outcomes else 0.0
    counts = {
        "prompt": sum(o.prompt_tokens for o in complete),
        "cached": sum(o.cached_tokens for o in complete),
        "output": sum(o.output_tokens for o in complete),
        "draft": sum(o.draft_tokens for o in complete),
        "draft_accepted": sum(o.accepted_tokens for o in complete),
    }
    return {
        "requests": len(outcomes),
        "failed": len(outcomes) - len(complete),
        "errors": dict(Counter(o.error for o in outcomes if o.error is not None).most_common()),
        "seconds": round(seconds, 4),
        "most_at_once": _most_at_once(outcomes),
        "tokens": counts,
        "tokens_counted_by": "usage" if all(o.has_usage for o in complete) else "pieces of text",
        "prompt_tokens": spread([float(o.prompt_tokens) for o in complete]),
        "output_tokens": spread([float(o.output_tokens) for o in complete]),
        "per_second": {
            "requests": _rate(len(complete), seconds),
            "prompt_tokens": _rate(counts["prompt"], seconds),
            "output_tokens": _rate(counts["output"], seconds),
        },
        "milliseconds": {name: spread(values) for name, values in latencies(outcomes).items()},
        "client_late_milliseconds": spread([1e3 * (o.sent - o.due) for o in outcomes]),
    }


def record(outcome: Outcome, begin: float) -> dict[str, Any]:
    """Return one request as JSON values; times are seconds after `begin`."""
    return {
        "due": round(outcome.due - begin, 6),
        "sent": round(outcome.sent - begin, 6),
        "ended": round(outcome.ended - begin, 6),
        "pieces": [round(when - begin, 6) for when in outcome.pieces],
        "prompt_tokens": outcome.prompt_tokens,
        "cached_tokens": outcome.cached_tokens,
        "output_tokens": outcome.output_tokens,
        "draft_tokens": outcome.draft_tokens,
        "accepted_tokens": outcome.accepted_tokens,
        "error": outcome.error,
    }


def _rate(count: int, seconds: float) -> float:
    return round(count / seconds, 3) if seconds else 0.0


def _most_at_once(outcomes: Sequence[Outcome]) -> int:
    """Return the largest number of requests that ran at the same time."""
    changes = sorted([(o.sent, 1) for o in outcomes] + [(o.ended, -1) for o in outcomes])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
