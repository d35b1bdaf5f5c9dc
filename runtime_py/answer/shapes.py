"""The answers, in OpenAI's shapes: plain objects with attributes and `model_dump`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal

from .lazy import LazyList

FinishReason = Literal["stop", "length", "tool_calls"]


class Shape:
    """A dataclass that turns into a dictionary, without the fields of `_optional` that are None."""

    __slots__ = ()
    _optional: frozenset[str] = frozenset()

    def model_dump(self) -> dict[str, Any]:
        """Dictionaries, lists and scalars, ready for JSON."""
        plain: dict[str, Any] = _plain(self.dumped())
        return plain

    def dumped(self) -> dict[str, Any]:
        """`model_dump`, in which lazy lists stay what they are: for who writes JSON."""
        dumped = {}
        kind: Any = type(self)
        for name, may_lack in _names(kind, self._optional):
            value = getattr(self, name)
            if value is None:
                if may_lack:
                    continue
            elif isinstance(value, Shape):
                value = value.dumped()
            elif type(value) is list:
                value = [v.dumped() if isinstance(v, Shape) else v for v in value]
            dumped[name] = value
        return dumped


def _plain(value: Any) -> Any:
    if isinstance(value, Shape):
        return value.model_dump()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, LazyList)) else value


@cache
def _names(kind: type[Any], optional: frozenset[str]) -> tuple[tuple[str, bool], ...]:
    """The fields, and whether each is left out if it is None; asked for every token."""
    assert is_dataclass(kind)
    return tuple((f.name, f.name in optional) for f in fields(kind))


@dataclass(slots=True)
class PromptTokensDetails(Shape):
    """Counts of the prompt's tokens."""

    cached_tokens: int = 0  # found in the prefix cache, each prompt once


@dataclass(slots=True)
class CompletionTokensDetails(Shape):
    """Draft tokens, of which rejected ones are in no other count; reasoning."""

    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(slots=True)
class Usage(Shape):
    """Tokens; a stop token that was sampled counts as completion, prompts of `n` choices once."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails = field(default_factory=PromptTokensDetails)
    completion_tokens_details: CompletionTokensDetails = field(
        default_factory=CompletionTokensDetails
    )


@dataclass(slots=True)
class Timings(Shape):
    """Times of a request, under the names of llama.cpp's server and one of our own, queue_ms."""

    queue_ms: float  # before the first step
    cache_n: int  # tokens of the prompt, found in the prefix cache
    prompt_n: int  # of the others
    prompt_ms: float  # from the first step to the first token
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int  # of all choices
    predicted_ms: float  # from the first token to the last
    predicted_per_token_ms: float
    predicted_per_second: float

    @classmethod
    def of(
        cls, queue: float, cached: int, computed: int, prompt: float, sampled: int, output: float
    ) -> Timings:
        """From counts of tokens and seconds. A rate of no time is 0."""
        return cls(
            1e3 * queue,
            cached,
            computed,
            1e3 * prompt,
            1e3 * prompt / max(computed, 1),
            computed / prompt if prompt else 0.0,
            sampled,
            1e3 * output,
            1e3 * output / max(sampled, 1),
            sampled / output if output else 0.0,
        )


@dataclass(slots=True)
class TopLogprob(Shape):
    """One alternative of a token."""

    token: str
    logprob: float
    bytes: list[int]


@dataclass(slots=True)
class TokenLogprob(Shape):
    """One token of a chat; `bytes` are its UTF-8, which may be a part of a character."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


@dataclass(slots=True)
class ChatLogprobs(Shape):
    """Log-probabilities of the tokens of a message or a chunk."""

    content: Sequence[TokenLogprob]
    refusal: None = None


@dataclass(slots=True)
class CompletionLogprobs(Shape):
    """Log-probabilities of a completion's tokens, by column; offsets count characters.

    The first token of an echoed prompt has no logprob: None.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: Sequence[dict[str, float] | None] | None
    text_offset: list[int]


@dataclass(slots=True)
class FunctionCall(Shape):
    """Which function is called, and with what: JSON as the model wrote it."""

    name: str
    arguments: str


@dataclass(slots=True)
class ToolCall(Shape):
    """A call that the assistant asks for."""

    id: str
    function: FunctionCall
    type: str = "function"


@dataclass(slots=True)
class ChatMessage(Shape):
    """What the assistant wrote.

    `reasoning_content` is DeepSeek's name of what the model wrote to itself, `reasoning` that of
    vLLM and OpenRouter.
    """

    _optional = frozenset({"reasoning_content", "reasoning", "tool_calls"})
    content: str | None  # None: calls alone
    role: str = "assistant"
    refusal: None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None


@dataclass(slots=True)
class ChatChoice(Shape):
    """One answer."""

    index: int
    message: ChatMessage
    finish_reason: FinishReason
    logprobs: ChatLogprobs | None = None


@dataclass(slots=True)
class FunctionCallDelta(Shape):
    """The name comes first and whole; pieces of the arguments follow."""

    _optional = frozenset({"name"})
    name: str | None = None
    arguments: str = ""


@dataclass(slots=True)
class ToolCallDelta(Shape):
    """What a chunk adds to one call; its first one has id, type and name."""

    _optional = frozenset({"id", "type"})
    index: int
    function: FunctionCallDelta
    id: str | None = None
    type: str | None = None


@dataclass(slots=True)
class ChatDelta(Shape):
    """What a chunk adds to a message."""

    _optional = frozenset({"role", "content", "reasoning_content", "reasoning", "tool_calls"})
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


@dataclass(slots=True)
class ChatChunkChoice(Shape):
    """One answer's share of a chunk."""

    index: int
    delta: ChatDelta
    finish_reason: FinishReason | None = None
    logprobs: ChatLogprobs | None = None


PromptLogprobs = Sequence[dict[str, dict[str, Any]] | None]  # by token id, the prompt's own first


@dataclass(slots=True)
class CompletionChoice(Shape):
    """One continuation, or a chunk's share of it."""

    _optional = frozenset({"prompt_logprobs"})
    index: int
    text: str
    finish_reason: FinishReason | None = None
    logprobs: CompletionLogprobs | None = None
    prompt_logprobs: PromptLogprobs | None = None  # as vLLM's server tells of them


@dataclass(slots=True)
class Answer(Shape):
    """What all answers begin with."""

    id: str
    created: int  # seconds since 1970
    model: str


@dataclass(slots=True)
class ChatCompletion(Answer):
    """Answer to a chat request."""

    _optional = frozenset({"prompt_logprobs"})
    choices: list[ChatChoice]
    usage: Usage
    timings: Timings
    object: str = "chat.completion"
    prompt_logprobs: PromptLogprobs | None = None  # as vLLM's server tells of them


@dataclass(slots=True)
class ChatCompletionChunk(Answer):
    """Piece of a streamed answer; the last one has no choices if usage was asked for."""

    _optional = frozenset({"timings"})
    choices: list[ChatChunkChoice]
    usage: Usage | None = None
    timings: Timings | None = None  # beside the usage
    object: str = "chat.completion.chunk"


@dataclass(slots=True)
class Completion(Answer):
    """Answer to a completion request, or a piece of a streamed one."""

    _optional = frozenset({"usage", "timings"})
    choices: list[CompletionChoice] = field(default_factory=list)
    usage: Usage | None = None
    timings: Timings | None = None  # beside the usage
    object: str = "text_completion"
