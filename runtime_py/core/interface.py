"""The core's interface for Python: tokens in, events out.

`NativeCore` (native.py) implements it over the C ABI of engine/include/wherry.h; tests use a core
of their own.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, overload

# In Event.error: the request's logits processors contradict each other
# (engine/sampling/adjustment.cc).
NO_TOKEN_LEFT = "leave no token possible"
MAX_TOP_LOGPROBS = 20  # WHERRY_MAX_TOP_LOGPROBS


class Finish(IntEnum):
    """The state of a request after an event (`wherry_finish`)."""

    RUNNING = 0  # more tokens follow
    STOP = 1  # the event's token is a stop id, or completes the grammar
    LENGTH = 2  # max_tokens or the context is used up; the token belongs to the output
    ABORTED = 3  # no token
    ERROR = 4  # no token; Event.error says why
    DONE = 5  # no token; the embedding is complete


class OutputGrammar(Protocol):
    """A compiled grammar (grammar/native.py)."""

    def mask(self, stop_ids: Sequence[int]) -> Any:
        """Make the `wherry_mask` of one request in its first state; `stop_ids` may end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling, limits and priority of one request (`wherry_params`)."""

    max_tokens: int = 0  # 0: until the context is full
    min_tokens: int = 0  # before that many tokens no stop id is sampled
    stop_ids: tuple[int, ...] = ()

    temperature: float = 1.0  # 0 is greedy
    dynamic_range: float = 0.0  # the temperature varies by this with the entropy; 0: off
    dynamic_exponent: float = 1.0
    top_p: float = 1.0  # (0, 1]
    top_k: int = 0  # 0: off
    min_p: float = 0.0  # [0, 1); least share of the most likely token's probability
    typical_p: float = 1.0  # (0, 1]; 1: off
    top_n_sigma: float = 0.0  # standard deviations of the logits; 0: off
    xtc_probability: float = 0.0  # 0: off
    xtc_threshold: float = 0.1  # (0, 0.5]
    mirostat_tau: float = 0.0  # surprise in bits; 0: off
    mirostat_eta: float = 0.1  # (0, 1]; learning rate
    repetition_penalty: float = 1.0  # > 0; of tokens in prompt and output
    presence_penalty: float = 0.0  # of tokens in the output
    frequency_penalty: float = 0.0  # of tokens in the output, for each occurrence
    dry_multiplier: float = 0.0  # 0: off
    dry_base: float = 1.75  # >= 1
    dry_allowed_length: int = 2  # tokens
    dry_range: int = 0  # tokens that DRY looks back; 0: all
    dry_breakers: tuple[int, ...] = ()  # token ids that end a repeated sequence
    seed: int = 0  # uint64
    bias: Mapping[int, float] = field(default_factory=dict)  # token id -> added to its logit
    allowed: tuple[int, ...] = ()  # token ids that may be sampled; empty: all
    bad_words: tuple[tuple[int, ...], ...] = ()  # token sequences that are never completed
    grammar: OutputGrammar | None = None  # constrains the output

    top_logprobs: int = 0  # 0..MAX_TOP_LOGPROBS alternatives of each event's token
    prompt_logprobs: int = -1  # -1: none; else alternatives of each prompt token

    priority: int = 0  # higher runs first
    user: int = 0  # uint64; requests of one user share a turn in the fair order
    salt: int = 0  # uint64; only requests of equal salt share cached prefixes
    adapter: int = 0

    max_drafts: int = -1  # draft tokens a step; 0 none, -1 the engine's choice
    prediction: tuple[int, ...] = ()  # tokens that the output probably repeats

    embed: int = 0  # 1: compute the prompt's embedding and no output
    source: tuple[int, ...] = ()  # the encoder's input


@dataclass(frozen=True, slots=True)
class Job:
    """One choice of an answer."""

    index: int
    prompt: list[int]
    params: SamplingParams


class TopTokens(Sequence[tuple[int, float]]):
    """The most likely tokens with their logprobs, in the core's arrays: a tenth of the memory.

    Args:
        numbers: int32 [n] tokens, then float32 [n] logprobs.
    """

    __slots__ = ("_numbers",)

    def __init__(self, numbers: bytes) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers) // 8

    def __iter__(self) -> Iterator[tuple[int, float]]:
        n = len(self)
        found = struct.unpack(f"{n}i{n}f", self._numbers)
        return zip(found[:n], found[n:], strict=True)

    @overload
    def __getitem__(self, at: int) -> tuple[int, float]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[tuple[int, float], ...]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, TopTokens)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Event(NamedTuple):
    """One token of one request, or its end."""

    id: int
    token: int  # -1: none
    finish: int  # a Finish
    logprob: float  # natural logarithm, of the distribution at temperature 1
    top: Sequence[tuple[int, float]] = ()  # the most likely tokens: (id, logprob)
    error: str = ""
    prompt: bool = False  # the token belongs to the prompt
    cached_tokens: int = 0  # prompt tokens found in the prefix cache
    drafted_tokens: int = 0  # draft tokens verified so far
    accepted_tokens: int = 0  # draft tokens accepted so far
    queue_seconds: float = 0.0  # before the first step
    prefill_seconds: float = 0.0  # from the first step to the first token
    decode_seconds: float = 0.0  # from the first token to this event
    embedding: bytes = b""  # float32, in this machine's byte order


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreStats:
    """Counters of an engine (`wherry_stats`)."""

    steps: int = 0  # forward passes
    prompt_tokens: int = 0  # of admitted requests
    prefill_tokens: int = 0  # prompt tokens computed
    cached_tokens: int = 0  # prompt tokens found in the prefix cache
    disk_tokens: int = 0  # cached tokens read from disk
    decode_tokens: int = 0
    recomputed_tokens: int = 0  # tokens computed again after a preemption
    drafted_tokens: int = 0  # draft tokens verified
    accepted_tokens: int = 0  # draft tokens accepted
    finished: int = 0  # requests, for any reason
    preemptions: int = 0  # requests preempted because pages ran out
    waiting: int = 0
    prefilling: int = 0
    running: int = 0
    pages_total: int = 0  # of the KV cache
    pages_free: int = 0
    pages_cached: int = 0  # free pages with prefixes that no request uses
    page_size: int = 0  # tokens
    model_seconds: float = 0.0
    sample_seconds: float = 0.0
    host_seconds: float = 0.0  # scheduling and bookkeeping
    step_seconds: float = 0.0  # age of the running step; 0: none runs
    failed_steps: int = 0  # consecutive failures; a lost device fails every step
    candidate_rows: int = 0  # logit rows whose token came from candidates of the device
    whole_rows: int = 0  # logit rows that were read whole: all of them on a CPU
    readback_bytes: int = 0  # bytes of results copied from a device
    overlapped_seconds: float = 0.0  # host work that ran while a device computed
    chained_steps: int = 0  # steps launched before the previous step was read
    wasted_rows: int = 0  # rows of chained steps for a rejected token or an ended request
    graph_steps: int = 0  # steps replayed as CUDA graphs
    graphs_given_up: str = ""  # why CUDA graphs were disabled; this costs only speed
    chains_given_up: str = ""  # why launch-ahead was disabled; this costs only speed
    disk_dropped: int = 0  # prefix blocks that were not written to prefix_cache_dir
    disk_problem: str = ""  # why no block is written at the moment; this costs only speed

    @property
    def vain_rows(self) -> int:
        """Deprecated: `wasted_rows`."""
        warnings.warn("CoreStats.vain_rows: write wasted_rows", DeprecationWarning, stacklevel=2)
        return self.wasted_rows


class Core(Protocol):
    """One loaded model with one engine. Every method may be called from any thread."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The library's metadata; Python reads "context" and "vocab_size"."""

    def start(self) -> None:
        """Start the engine's own thread, which steps while there is work."""

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        """Queue a request, 1 <= len(tokens) < context; an embedding may have <= context.

        Raises:
            UsageError: a token or a parameter is out of range.
        """

    def abort(self, request_id: int) -> None:
        """Abort a request and free its pages; an ended one is ignored."""

    def wait_events(self, timeout_ms: int) -> list[Event]:
        """Wait for events; [] after the timeout or `wake`. -1 waits without a timeout."""

    def wake(self) -> None:
        """Make one blocked `wait_events` return."""

    def stats(self) -> CoreStats:
        """Read the counters."""

    def reset(self) -> None:
        """Abort every request, clear the cache and the counters."""

    def clear_cache(self) -> None:
        """Drop cached prefixes that no request uses; those on disk stay."""

    def close(self) -> None:
        """Stop the thread and free everything; no call may follow or run at the same time."""
