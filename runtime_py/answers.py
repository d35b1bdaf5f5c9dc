"""Records of responses in OpenAI's shapes: plain objects with attributes and `model_dump`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal

FinishReason = Literal["stop", "length", "tool_calls"]


class Shape:
    """A dataclass that converts to a dictionary.

    Fields in `_optional` that are None are omitted.
    """

    __slots__ = ()
    _optional: frozenset[str] = frozenset()

    def model_dump(self) -> dict[str, Any]:
        """Return dictionaries, lists and scalars, ready for JSON."""
        plain = {}
        kind: Any = type(self)
        for name, may_lack in _names(kind, self._optional):
            value = getattr(self, name)
            if value is not None or not may_lack:
                plain[name] = _plain(value)
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Shape):
        return value.model_dump()
    return [_plain(item) for item in value] if isinstance(value, list) else value


@cache
def _names(kind: type[Any], optional: frozenset[str]) -> tuple[tuple[str, bool], ...]:
    """Return each field's name, and whether the field is omitted when it is None.

    The result is cached because each streamed token needs it.
    """
    assert is_dataclass(kind)
    return tuple((f.name, f.name in optional) for f in fields(kind))


@dataclass(slots=True)
class PromptTokensDetails(Shape):
    """The part of the prompt's token count that OpenAI reports separately."""

    cached_tokens: int = 0  # prompt tokens found in the prefix cache; each prompt counts once


@dataclass(slots=True)
class CompletionTokensDetails(Shape):
    """Counts of draft tokens and reasoning tokens; other counts exclude rejected draft tokens."""

    accepted_prediction_tokens: int = 0  # draft tokens that the model has accepted
    rejected_prediction_tokens: int = 0  # draft tokens that the model has rejected
    reasoning_tokens: int = 0  # output tokens of the reasoning


@dataclass(slots=True)
class Usage(Shape):
    """Token counts of a request.

    A sampled stop token counts, and a prompt counts once for all choices.
    """

    prompt_tokens: int  # tokens of the prompt, after the chat template
    completion_tokens: int  # output tokens of all choices
    total_tokens: int  # both together
    # how many of them were cached
    prompt_tokens_details: PromptTokensDetails = field(default_factory=PromptTokensDetails)
    # counts of draft and reasoning tokens
    completion_tokens_details: CompletionTokensDetails = field(
        default_factory=CompletionTokensDetails
    )


@dataclass(slots=True)
class Timings(Shape):
    """Times of a request, with the names of llama.cpp's server; only queue_ms is Wherry's own."""

    queue_ms: float  # milliseconds that the request waited for its first step
    cache_n: int  # prompt tokens found in the prefix cache
    prompt_n: int  # prompt tokens that were computed
    prompt_ms: float  # milliseconds from the first step to the first token
    prompt_per_token_ms: float  # prompt_ms / prompt_n
    prompt_per_second: float  # prompt tokens computed per second
    predicted_n: int  # output tokens of all choices
    predicted_ms: float  # milliseconds from the first output token to the last
    predicted_per_token_ms: float  # predicted_ms / predicted_n
    predicted_per_second: float  # output tokens per second


@dataclass(slots=True)
class TopLogprob(Shape):
    """One alternative of a token with its log probability."""

    token: str
    logprob: float
    bytes: list[int]


@dataclass(slots=True)
class TokenLogprob(Shape):
    """One token of a chat completion; `bytes` is its UTF-8, perhaps a partial character."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


@dataclass(slots=True)
class ChatLogprobs(Shape):
    """The log probabilities of the tokens in a message or in a chunk."""

    content: Sequence[TokenLogprob]
    refusal: None = None


@dataclass(slots=True)
class CompletionLogprobs(Shape):
    """The log probabilities of a completion's tokens, in columns; `text_offset` counts characters.

    The first token of an echoed prompt has no logprob (None).
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: Sequence[dict[str, float] | None] | None
    text_offset: list[int]


@dataclass(slots=True)
class FunctionCall(Shape):
    """The name of the called function and its arguments, as the JSON text that the model wrote."""

    name: str  # the function's name
    arguments: str  # JSON text, as the model wrote it


@dataclass(slots=True)
class CustomCall(Shape):
    """The name of the called custom tool, and its input."""

    name: str  # the tool's name
    input: str  # its input, as the model wrote it


@dataclass(slots=True)
class ToolCall(Shape):
    """A tool call of the assistant: of a function, or of a custom tool."""

    _optional = frozenset({"function", "custom"})
    id: str  # id of the call, for the message with its result
    function: FunctionCall | None = None  # name and arguments
    type: str = "function"  # "function" or "custom"
    custom: CustomCall | None = None  # name and input


@dataclass(slots=True)
class ChatMessage(Shape):
    """The assistant's message.

    `reasoning_content` is DeepSeek's name of the reasoning, `reasoning` the name of vLLM and
    OpenRouter.
    """

    _optional = frozenset({"reasoning_content", "reasoning", "tool_calls"})
    content: str | None  # the text of the message; None if the message has only tool calls
    role: str = "assistant"  # always "assistant"
    refusal: None = None  # always None: OpenAI's field
    reasoning_content: str | None = None  # the model's reasoning, if it reasons
    reasoning: str | None = None  # the same
    tool_calls: list[ToolCall] | None = None  # calls of functions, if there are any


@dataclass(slots=True)
class ChatChoice(Shape):
    """One choice of a chat completion: the message and why it ended."""

    index: int  # place among the request's choices
    message: ChatMessage  # the answer
    finish_reason: FinishReason  # why it ended
    logprobs: ChatLogprobs | None = None  # log probabilities of its tokens, if requested


@dataclass(slots=True)
class FunctionCallDelta(Shape):
    """A piece of a function call: the whole name first, then pieces of the arguments."""

    _optional = frozenset({"name"})
    name: str | None = None
    arguments: str = ""


@dataclass(slots=True)
class CustomCallDelta(Shape):
    """A piece of a call of a custom tool: the whole name first, then pieces of the input."""

    _optional = frozenset({"name"})
    name: str | None = None
    input: str = ""


@dataclass(slots=True)
class ToolCallDelta(Shape):
    """The addition of one chunk to one tool call; the first addition has id, type and name."""

    _optional = frozenset({"id", "type", "function", "custom"})
    index: int
    function: FunctionCallDelta | None = None
    id: str | None = None
    type: str | None = None
    custom: CustomCallDelta | None = None


@dataclass(slots=True)
class ChatDelta(Shape):
    """The addition of one chunk to a message."""

    _optional = frozenset({"role", "content", "reasoning_content", "reasoning", "tool_calls"})
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


@dataclass(slots=True)
class ChatChunkChoice(Shape):
    """One choice's entry in a chunk of a streamed chat completion."""

    index: int  # place among the request's choices
    delta: ChatDelta  # what the chunk adds
    finish_reason: FinishReason | None = None  # why it ended; None before the end
    logprobs: ChatLogprobs | None = None  # log probabilities of its tokens, if requested


# One dictionary for each prompt token, from token id to logprob; the token itself comes first.
PromptLogprobs = Sequence[dict[str, dict[str, Any]] | None]


@dataclass(slots=True)
class CompletionChoice(Shape):
    """One choice of a completion: its whole text, or the piece that a chunk adds."""

    _optional = frozenset({"prompt_logprobs"})
    index: int  # place among the request's choices
    text: str  # the text, without the prompt unless echo is set
    finish_reason: FinishReason | None = None  # why it ended; None before the end
    logprobs: CompletionLogprobs | None = None  # log probabilities of its tokens, if requested
    # log probabilities of the prompt, in the form of vLLM's server
    prompt_logprobs: PromptLogprobs | None = None


@dataclass(slots=True)
class Answer(Shape):
    """The fields that all responses share."""

    id: str  # id of the response
    created: int  # Unix time in seconds
    model: str  # name of the model


@dataclass(slots=True)
class ChatCompletion(Answer):
    """The response to a chat request."""

    _optional = frozenset({"prompt_logprobs", "dropped_messages"})
    choices: list[ChatChoice]  # n answers; one by default
    usage: Usage  # token counts
    timings: Timings  # times of the request
    object: str = "chat.completion"  # kind of the record
    # number of messages that `truncation` has left out; None: none
    dropped_messages: int | None = None
    # log probabilities of the prompt, in the form of vLLM's server
    prompt_logprobs: PromptLogprobs | None = None


@dataclass(slots=True)
class ChatCompletionChunk(Answer):
    """A chunk of a streamed chat completion; with `include_usage` the last one has no choices.

    Only that chunk has `usage`: some clients take a null for the end.
    """

    _optional = frozenset({"usage", "timings", "dropped_messages"})
    choices: list[ChatChunkChoice]  # the choices to which the chunk adds something
    usage: Usage | None = None  # token counts, in the last chunk, if requested
    # times of the request; only the chunk that has usage carries them
    timings: Timings | None = None
    object: str = "chat.completion.chunk"  # kind of the record
    # number of messages that `truncation` has left out, in the first chunk; None: none
    dropped_messages: int | None = None


@dataclass(slots=True)
class Completion(Answer):
    """The response to a completion request, or one chunk of a streamed one."""

    _optional = frozenset({"usage", "timings"})
    choices: list[CompletionChoice] = field(default_factory=list)  # n texts for each prompt
    usage: Usage | None = None  # token counts; in a stream only the last chunk's, if requested
    # times of the request; only the chunk that has usage carries them
    timings: Timings | None = None
    object: str = "text_completion"  # kind of the record
