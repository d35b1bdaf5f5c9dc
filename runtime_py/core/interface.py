"""What the Python side asks of a core: tokens in, events out.

`NativeCore` (native.py) is the real one, over the C ABI of engine/include/wherry.h; tests
put a core of their own in its place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, overload

# Of an Event.error: the request contradicts itself (engine/sampling/adjustment.cc).
NO_TOKEN_LEFT = "leave no token possible"
MAX_TOP_LOGPROBS = 20  # WHERRY_MAX_TOP_LOGPROBS


class Finish(IntEnum):
    """How an event leaves its request (`wherry_finish`)."""

    RUNNING = 0  # more tokens follow
    STOP = 1  # the event's token is a stop id, or completes the grammar
    LENGTH = 2  # max_tokens or the context is used up; the token belongs to the output
    ABORTED = 3  # no token
    ERROR = 4  # no token; Event.error says why
    DONE = 5  # no token; an embedding is there


class OutputGrammar(Protocol):
    """A compiled grammar (grammar/native.py)."""

    def mask(self, stop_ids: Sequence[int]) -> Any:
        """The `wherry_mask` of one request, at its beginning; `stop_ids` may end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling, limits and place in the queue of one request (`wherry_params`)."""

    max_tokens: int = 0  # 0: until the context ends
    min_tokens: int = 0  # stop ids are not sampled before
    stop_ids: tuple[int, ...] = ()

    temperature: float = 1.0  # 0 is greedy
    dynamic_range: float = 0.0  # temperature varies by it with the entropy; 0 is none
    dynamic_exponent: float = 1.0
    top_p: float = 1.0  # (0, 1]
    top_k: int = 0  # 0: all
    min_p: float = 0.0  # [0, 1) share of the most likely token's probability
    typical_p: float = 1.0  # (0, 1]; 1 is none
    top_n_sigma: float = 0.0  # 0 is none
    xtc_probability: float = 0.0  # 0 is none
    xtc_threshold: float = 0.1  # (0, 0.5]
    mirostat_tau: float = 0.0  # bits; 0 is none
    mirostat_eta: float = 0.1  # (0, 1]
    repetition_penalty: float = 1.0  # > 0; over prompt and output
    presence_penalty: float = 0.0  # over the output
    frequency_penalty: float = 0.0  # over the output
    dry_multiplier: float = 0.0  # 0 is none
    dry_base: float = 1.75  # >= 1
    dry_allowed_length: int = 2  # tokens
    dry_range: int = 0  # tokens that are looked back; 0: all
    dry_breakers: tuple[int, ...] = ()  # token ids
    seed: int = 0  # uint64
    bias: Mapping[int, float] = field(default_factory=dict)  # token id -> added to its logit
    allowed: tuple[int, ...] = ()  # token ids: no other may come; empty: all
    bad_words: tuple[tuple[int, ...], ...] = ()  # token sequences that may not be completed
    grammar: OutputGrammar | None = None  # what the output is held to

    top_logprobs: int = 0  # 0..MAX_TOP_LOGPROBS alternatives in each event
    prompt_logprobs: int = -1  # -1: none; else so many alternatives for each prompt token

    priority: int = 0  # higher goes first
    user: int = 0  # uint64; requests of one user share one place in the queue's order
    salt: int = 0  # uint64; only requests of equal salt share cached prefixes
    adapter: int = 0

    max_drafts: int = -1  # draft tokens a step; 0 none, -1 the engine's choice
    prediction: tuple[int, ...] = ()  # what the output is likely to repeat

    embed: int = 0  # 1: the prompt's embedding in place of an output
    source: tuple[int, ...] = ()  # what an encoder reads


class TopTokens(Sequence[tuple[int, float]]):
    """The most likely tokens with their logprobs, as the core's numbers: a tenth of the memory.

    Args:
        numbers: int32 [n] of tokens, then float32 [n] of logprobs.
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
    finish: int  # Finish
    logprob: float  # natural logarithm, of the distribution at temperature 1
    top: Sequence[tuple[int, float]] = ()  # the most likely tokens: (id, logprob)
    error: str = ""
    prompt: bool = False  # a token of the prompt
    cached_tokens: int = 0  # of the prompt, found in the prefix cache
    drafted_tokens: int = 0  # verified so far
    accepted_tokens: int = 0  # of them, right
    queue_seconds: float = 0.0  # before its first step
    prefill_seconds: float = 0.0  # from there to its first token
    decode_seconds: float = 0.0  # from there to this event
    embedding: bytes = b""  # float32, in the order of this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreStats:
    """Counters of an engine (`wherry_stats`)."""

    steps: int = 0  # model runs
    prompt_tokens: int = 0  # of the requests that were admitted
    prefill_tokens: int = 0  # of them, computed
    cached_tokens: int = 0  # of them, found in the prefix cache
    disk_tokens: int = 0  # of these, read from disk
    decode_tokens: int = 0
    recomputed_tokens: int = 0  # after a preemption
    drafted_tokens: int = 0  # verified
    accepted_tokens: int = 0  # of them, right
    finished: int = 0  # requests, whatever the reason
    preemptions: int = 0  # requests preempted because pages ran out
    waiting: int = 0
    prefilling: int = 0
    running: int = 0
    pages_total: int = 0  # of the KV cache
    pages_free: int = 0
    pages_cached: int = 0  # of the free ones: hold prefixes that no request uses
    page_size: int = 0  # tokens
    model_seconds: float = 0.0
    sample_seconds: float = 0.0
    host_seconds: float = 0.0  # planning, and moving requests on
    step_seconds: float = 0.0  # since the step under way began; 0: none is
    failed_steps: int = 0  # in a row, up to the last one; a lost device fails them all
    candidate_rows: int = 0  # of logits, whose token came from what a device made of them
    whole_rows: int = 0  # whose token came from the row itself: all on a CPU
    readback_bytes: int = 0  # of results, brought from a device
    overlapped_seconds: float = 0.0  # of sample_seconds and host_seconds, while a device computed
    chained_steps: int = 0  # launched before the step before them was read
    vain_rows: int = 0  # of them, for a token that was another, or a request that had ended
    graph_steps: int = 0  # launched as one command: CUDA graphs
    graphs_given_up: str = ""  # why none is any more, which costs speed alone
    chains_given_up: str = ""  # as that, of steps that are launched ahead
    disk_dropped: int = 0  # blocks of prefixes that were not written to prefix_cache_dir
    disk_problem: str = ""  # why none is at the moment, which costs speed alone


class Core(Protocol):
    """One loaded model with one engine. Every method may be called from any thread."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The library's metadata; "context" and "vocab_size" are read here."""

    def start(self) -> None:
        """Start the engine's own thread: it steps while there is work."""

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        """Queue a request, 1 <= len(tokens) < context; to embed them, <= context.

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

    def clear_cache(self) -> None:
        """Forget cached prefixes that no request uses; those on disk stay."""

    def close(self) -> None:
        """Stop the thread and free everything; no other call may follow or be under way."""
