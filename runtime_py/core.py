"""What the Python side asks of a core: tokens in, events out.

`NativeCore` (core_native.py) is the real one, over the C ABI of engine/include/wherry.h; tests
put a core of their own in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

MAX_TOP_LOGPROBS = 20  # CORE_MAX_TOP_LOGPROBS


class Finish(IntEnum):
    """How an event leaves its request (`core_finish`)."""

    RUNNING = 0  # more tokens follow
    STOP = 1  # the event's token is a stop id
    LENGTH = 2  # max_tokens or the context is used up; the token belongs to the output
    ABORTED = 3  # no token
    ERROR = 4  # no token; Event.error says why


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling and limits of one request (`core_params`)."""

    max_tokens: int = 0  # 0: until the context ends
    temperature: float = 1.0  # 0 is greedy
    top_p: float = 1.0  # (0, 1]
    top_k: int = 0  # 0: all
    min_p: float = 0.0  # [0, 1) share of the most likely token's probability
    repetition_penalty: float = 1.0  # > 0; over prompt and output
    presence_penalty: float = 0.0  # over the output
    frequency_penalty: float = 0.0  # over the output
    seed: int = 0  # uint64
    stop_ids: tuple[int, ...] = ()
    bias: Mapping[int, float] = field(default_factory=dict)  # token id -> added to its logit
    top_logprobs: int = 0  # 0..MAX_TOP_LOGPROBS alternatives in each event


class Event(NamedTuple):
    """One token of one request, or its end."""

    id: int
    token: int  # -1: none
    finish: int  # Finish
    logprob: float  # natural logarithm, of the distribution at temperature 1
    top: tuple[tuple[int, float], ...] = ()  # the most likely tokens: (id, logprob)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreStats:
    """Counters of an engine (`core_stats_t`)."""

    steps: int = 0  # model runs
    prefill_tokens: int = 0
    decode_tokens: int = 0
    finished: int = 0  # requests, whatever the reason
    waiting: int = 0
    prefilling: int = 0
    running: int = 0
    pages_total: int = 0  # of the KV cache
    pages_free: int = 0
    page_size: int = 0  # tokens
    model_seconds: float = 0.0
    sample_seconds: float = 0.0


class Core(Protocol):
    """One loaded model with one engine. Every method may be called from any thread."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The library's metadata; "context" and "vocab_size" are read here."""

    def start(self) -> None:
        """Start the engine's own thread: it steps while there is work."""

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        """Queue a request, 1 <= len(tokens) < context.

        Raises:
            UsageError: a token or a parameter is out of range.
        """

    def abort(self, request_id: int) -> None:
        """End a request and free its pages; one that has ended already is left alone."""

    def wait_events(self, timeout_ms: int) -> list[Event]:
        """Wait for events; [] after the timeout or after `wake`. -1 waits for ever."""

    def wake(self) -> None:
        """Make one `wait_events` return."""

    def stats(self) -> CoreStats:
        """Read the counters."""

    def reset(self) -> None:
        """Abort every request, clear the cache and the counters."""

    def close(self) -> None:
        """Stop the thread and free everything; no other call may follow or be under way."""
