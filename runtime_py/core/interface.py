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

# The text in Event.error if a request's logits processors exclude every token
# (engine/sampling/adjustment.cc).
NO_TOKEN_LEFT = "leave no token possible"
MAX_TOP_LOGPROBS = 20  # must equal WHERRY_MAX_TOP_LOGPROBS in wherry.h


class Finish(IntEnum):
    """The state of a request after an event, as in the C enum `wherry_finish`."""

    RUNNING = 0  # the request continues with more tokens
    STOP = 1  # the event's token is a stop id, or completes the grammar
    LENGTH = 2  # max_tokens or the context is used up; the event's token belongs to the output
    ABORTED = 3  # the request was aborted; the event has no token
    ERROR = 4  # the request failed and Event.error says why; the event has no token
    DONE = 5  # the embedding is complete; the event has no token


class OutputGrammar(Protocol):
    """A compiled grammar that constrains an output; grammar/native.py implements it."""

    def mask(self, stop_ids: Sequence[int]) -> Any:
        """Return the `wherry_mask` of one request in the grammar's first state.

        Tokens in `stop_ids` may end the output where the grammar allows an end.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling parameters, limits and priority of one request (the C struct `wherry_params`)."""

    max_tokens: int = 0  # maximum number of output tokens; 0: until the context is full
    min_tokens: int = 0  # number of output tokens before which no stop id is sampled
    stop_ids: tuple[int, ...] = ()  # tokens that end the output

    temperature: float = 1.0  # temperature of the softmax; 0: greedy decoding
    # largest change of the temperature that the entropy may cause (dynatemp); 0: off
    dynamic_range: float = 0.0
    dynamic_exponent: float = 1.0  # exponent of the entropy in dynatemp
    top_p: float = 1.0  # total probability of the most likely tokens that are kept, in (0, 1]
    top_k: int = 0  # number of most likely tokens that are kept; 0: all
    # minimum probability of a kept token relative to the most likely token's, in [0, 1)
    min_p: float = 0.0
    # total probability of the tokens kept by locally typical sampling, in (0, 1]; 1: off
    typical_p: float = 1.0
    # distance from the largest logit that tokens may have, in standard deviations; 0: off
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0  # probability with which XTC excludes the top tokens; 0: off
    xtc_threshold: float = 0.1  # probability above which XTC may exclude a token, in (0, 0.5]
    mirostat_tau: float = 0.0  # surprise that Mirostat aims at, in bits; 0: off
    mirostat_eta: float = 0.1  # learning rate of Mirostat, in (0, 1]
    # factor > 0 against tokens that occur in prompt or output; 1: off
    repetition_penalty: float = 1.0
    # subtracted from the logit of each token that occurs in the output
    presence_penalty: float = 0.0
    # subtracted from a token's logit for each of its occurrences in the output
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0  # strength of the DRY penalty on repeated sequences; 0: off
    dry_base: float = 1.75  # growth of the DRY penalty with each further repeated token, >= 1
    dry_allowed_length: int = 2  # length in tokens up to which DRY does not penalize a repetition
    dry_range: int = 0  # number of past tokens in which DRY searches; 0: all
    dry_breakers: tuple[int, ...] = ()  # token ids at which DRY ends a repeated sequence
    seed: int = 0  # seed of the random numbers, uint64
    # maps a token id to the value added to its logit
    bias: Mapping[int, float] = field(default_factory=dict)
    allowed: tuple[int, ...] = ()  # token ids that may be sampled; empty: all
    bad_words: tuple[tuple[int, ...], ...] = ()  # token sequences that the output never contains
    grammar: OutputGrammar | None = None  # grammar that constrains the output; None: free text

    top_logprobs: int = 0  # number of alternatives with each event's token, 0 to MAX_TOP_LOGPROBS
    # number of alternatives with each prompt token; -1: no prompt logprobs at all
    prompt_logprobs: int = -1

    priority: int = 0  # requests with a higher priority run first
    # uint64 id of the user; the fair order gives all requests of a user one turn together
    user: int = 0
    salt: int = 0  # uint64 salt; only requests with equal salt share cached prefixes
    adapter: int = 0  # index of the library's adapter; 0: none

    # maximum number of draft tokens in a step; 0: none, -1: the engine chooses
    max_drafts: int = -1
    # tokens that the output probably repeats, used as draft tokens
    prediction: tuple[int, ...] = ()

    embed: int = 0  # 1: compute the prompt's embedding and no output
    source: tuple[int, ...] = ()  # input tokens of an encoder-decoder model's encoder


@dataclass(frozen=True, slots=True)
class Job:
    """The core request for one choice of a response: tokens and sampling parameters."""

    index: int
    prompt: list[int]
    params: SamplingParams


class TopTokens(Sequence[tuple[int, float]]):
    """The most likely tokens with their logprobs, kept in the core's arrays.

    They take a tenth of the memory of a list of tuples.

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
        values = struct.unpack(f"{n}i{n}f", self._numbers)
        return zip(values[:n], values[n:], strict=True)

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
    """One token of one request, or the end of the request."""

    id: int  # id of the request
    token: int  # id of the token; -1: the event has none
    finish: int  # state of the request, one of Finish
    logprob: float  # natural logarithm of the token's probability at temperature 1
    top: Sequence[tuple[int, float]] = ()  # the most likely tokens, as (id, logprob)
    error: str = ""  # why the request has failed, with Finish.ERROR
    prompt: bool = False  # whether the token belongs to the prompt
    cached_tokens: int = 0  # prompt tokens found in the prefix cache
    drafted_tokens: int = 0  # draft tokens that the model has verified so far
    accepted_tokens: int = 0  # draft tokens that the model has accepted so far
    queue_seconds: float = 0.0  # seconds that the request waited for its first step
    prefill_seconds: float = 0.0  # seconds from the first step to the first token
    decode_seconds: float = 0.0  # seconds from the first token to this event
    embedding: bytes = b""  # embedding vector, float32 in this machine's byte order


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreStats:
    """Counters of an engine (the C struct `wherry_stats`)."""

    steps: int = 0  # number of forward passes
    prompt_tokens: int = 0  # prompt tokens of all admitted requests
    prefill_tokens: int = 0  # prompt tokens that the model has computed
    cached_tokens: int = 0  # prompt tokens found in the prefix cache
    disk_tokens: int = 0  # cached tokens read from disk
    decode_tokens: int = 0  # output tokens
    recomputed_tokens: int = 0  # tokens computed again after a preemption
    drafted_tokens: int = 0  # draft tokens that the model has verified
    accepted_tokens: int = 0  # draft tokens that the model has accepted
    finished: int = 0  # requests that have ended, for any reason
    preemptions: int = 0  # requests preempted because pages ran out
    waiting: int = 0  # requests that wait for their first step
    prefilling: int = 0  # requests whose prompts are computed
    running: int = 0  # requests that decode
    pages_total: int = 0  # pages of the KV cache in total
    pages_free: int = 0  # pages that no request uses
    pages_cached: int = 0  # free pages that still cache prefixes
    page_size: int = 0  # tokens in one page of the KV cache
    model_seconds: float = 0.0  # seconds of the model's steps
    sample_seconds: float = 0.0  # seconds of sampling
    host_seconds: float = 0.0  # seconds that the CPU spent on scheduling and bookkeeping
    step_seconds: float = 0.0  # seconds since the running step began; 0: none runs
    failed_steps: int = 0  # steps that have failed in a row; a lost device fails every step
    candidate_rows: int = 0  # logit rows whose token was sampled from the device's candidates
    whole_rows: int = 0  # logit rows that were copied as a whole; on a CPU every row is
    readback_bytes: int = 0  # bytes of results copied from a device
    overlapped_seconds: float = 0.0  # seconds of host work that ran while a device computed
    chained_steps: int = 0  # steps that were launched before the host had read the previous step
    # rows of steps launched ahead that belonged to a rejected token or an ended request
    wasted_rows: int = 0
    graph_steps: int = 0  # steps replayed as CUDA graphs
    graphs_given_up: str = ""  # why CUDA graphs were disabled; this costs only speed
    chains_given_up: str = ""  # why launch-ahead was disabled; this costs only speed
    disk_dropped: int = 0  # prefix blocks that were not written to prefix_cache_dir
    state_slots: int = 0  # slots of recurrent states; 0: the model has none
    state_slots_free: int = 0  # slots that neither a request nor a snapshot has
    state_snapshots: int = 0  # slots with the state after a cached prefix
    images_encoded: int = 0  # tiles of images that the model's tower has computed
    disk_problem: str = ""  # why no block is written at the moment; this costs only speed

    @property
    def vain_rows(self) -> int:
        """Return `wasted_rows`, the new name of this deprecated counter."""
        warnings.warn("CoreStats.vain_rows: write wasted_rows", DeprecationWarning, stacklevel=2)
        return self.wasted_rows


class Records(NamedTuple):
    """Events as the C ABI has them (`wherry_event`)."""

    events: Any  # a C array; valid until the next call
    n: int  # number of its events
    error: bytes  # why a request of these failed


class Core(Protocol):
    """One loaded model with one engine; every method may be called from any thread."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return the compiled library's metadata; Python reads "context" and "vocab_size"."""

    def start(self) -> None:
        """Start the engine's own thread, which runs steps while requests are active."""

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        """Queue a request with 1 <= len(tokens) < context; for an embedding <= context.

        Raises:
            UsageError: a token or a parameter is out of range.
        """

    def add_record(self, request_id: int, tokens: Any, n: int, params: Any) -> None:
        """Queue a request as `add`, by C arrays: n tokens, and a pointer to `wherry_params`."""

    def abort(self, request_id: int) -> None:
        """Abort a request and free its pages; a request that has ended is ignored."""

    def wait(self, timeout_ms: int) -> Records:
        """Wait for events and return them; none after the timeout or `wake`.

        With -1 there is no timeout. Only one thread may call this.
        """

    def wake(self) -> None:
        """Make one blocked `wait` return."""

    def stats(self) -> CoreStats:
        """Return the engine's counters."""

    def reset(self) -> None:
        """Abort every request, clear the cache and the counters."""

    def clear_cache(self) -> None:
        """Drop cached prefixes that no request uses; prefixes on disk stay."""

    def close(self) -> None:
        """Stop the engine's thread and free everything.

        No call may follow or run at the same time.
        """
