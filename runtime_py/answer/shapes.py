"""The answers, in OpenAI's shapes: plain objects with attributes and `model_dump`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

FinishReason = Literal["stop", "length"]


class Shape:
    """A dataclass that turns into a dictionary, without the fields of `_optional` that are None."""

    __slots__ = ()
    _optional: frozenset[str] = frozenset()

    def model_dump(self) -> dict[str, Any]:
        """Dictionaries, lists and scalars, ready for JSON."""
        assert is_dataclass(self)
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {n: _plain(v) for n, v in values if v is not None or n not in self._optional}


def _plain(value: Any) -> Any:
    if isinstance(value, Shape):
        return value.model_dump()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


@dataclass(slots=True)
class PromptTokensDetails(Shape):
    """Of the prompt's tokens."""

    cached_tokens: int = 0  # found in the prefix cache, each prompt once


@dataclass(slots=True)
class CompletionTokensDetails(Shape):
    """Guesses that were made ahead; rejected ones are in no other count."""

    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0


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
    """Of the tokens of a message, or of a chunk."""

    content: list[TokenLogprob]
    refusal: None = None


@dataclass(slots=True)
class CompletionLogprobs(Shape):
    """Of the tokens of a completion, column by column; offsets are characters of its text.

    The first token of an echoed prompt has no logprob: None.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


@dataclass(slots=True)
class ChatMessage(Shape):
    """What the assistant wrote."""

    content: str
    role: str = "assistant"
    refusal: None = None


@dataclass(slots=True)
class ChatChoice(Shape):
    """One answer."""

    index: int
    message: ChatMessage
    finish_reason: FinishReason
    logprobs: ChatLogprobs | None = None


@dataclass(slots=True)
class ChatDelta(Shape):
    """What a chunk adds to a message."""

    _optional = frozenset({"role", "content"})
    role: str | None = None
    content: str | None = None


@dataclass(slots=True)
class ChatChunkChoice(Shape):
    """One answer's share of a chunk."""

    index: int
    delta: ChatDelta
    finish_reason: FinishReason | None = None
    logprobs: ChatLogprobs | None = None


@dataclass(slots=True)
class CompletionChoice(Shape):
    """One continuation, or a chunk's share of it."""

    index: int
    text: str
    finish_reason: FinishReason | None = None
    logprobs: CompletionLogprobs | None = None


@dataclass(slots=True)
class Answer(Shape):
    """What all answers begin with."""

    id: str
    created: int  # seconds since 1970
    model: str


@dataclass(slots=True)
class ChatCompletion(Answer):
    """Answer to a chat request."""

    choices: list[ChatChoice]
    usage: Usage
    object: str = "chat.completion"


@dataclass(slots=True)
class ChatCompletionChunk(Answer):
    """Piece of a streamed answer; the last one has no choices if usage was asked for."""

    choices: list[ChatChunkChoice]
    usage: Usage | None = None
    object: str = "chat.completion.chunk"


@dataclass(slots=True)
class Completion(Answer):
    """Answer to a completion request, or a piece of a streamed one."""

    _optional = frozenset({"usage"})
    choices: list[CompletionChoice] = field(default_factory=list)
    usage: Usage | None = None
    object: str = "text_completion"
