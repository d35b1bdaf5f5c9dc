"""The requests that are accepted, in OpenAI's shapes. Validated once a request, never a token."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wherry.errors import listing

from .core import MAX_TOP_LOGPROBS
from .request_error import RequestError
from .sampling_fields import SamplingFields, TokenId

StopString = Annotated[str, Field(max_length=1024)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class StreamOptions(_Shape):
    """How a stream ends."""

    include_usage: bool = False


class ContentPart(_Shape):
    """One part of a message's content; only text is understood."""

    type: str
    text: str | None = None


class Message(_Shape):
    """One message; further fields are handed to the model's template as they are."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class SamplingRequest(_Shape, SamplingFields):
    """What both endpoints share. None: generation_config.json, else OpenAI's default."""

    model: str = ""
    max_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    n: int | None = Field(None, ge=1, le=128)
    seed: int | None = Field(None, ge=-(2**63), lt=2**64)
    stop: StopString | list[StopString] | None = Field(None, max_length=1024)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings as a tuple."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


class ChatRequest(SamplingRequest):
    """POST /v1/chat/completions."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    chat_template_kwargs: dict[str, Any] | None = None


class CompletionRequest(SamplingRequest):
    """POST /v1/completions. `prompt`: a text, texts, token ids, or several lists of them."""

    prompt: str | list[str] | list[TokenId] | list[list[TokenId]]
    echo: bool | None = None  # the prompt's text, with logprobs where asked for, comes first
    logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)


# Fields that clients send and that cannot change what the model writes here.
_NO_EFFECT = frozenset(
    "metadata prediction prompt_cache_key prompt_cache_retention safety_identifier service_tier "
    "store user parallel_tool_calls".split()
)
# Fields whose neglect would change the answer; each with the values that ask for nothing.
_MEANINGFUL: dict[str, tuple[Any, ...]] = {
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
    "suffix": ("",),
    "best_of": (1,),
    "prompt_logprobs": (False,),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "structured_outputs": (),
    "grammar": (),
    "json_schema": (),
}

R = TypeVar("R", bound=SamplingRequest)


def parse(kind: type[R], fields: Any) -> R:
    """Validate a request's fields.

    Raises:
        RequestError: a field is missing or out of range, or its neglect would change the answer;
            the message lists all of them, `param` is the first.
    """
    try:
        request = kind.model_validate(fields)
    except ValidationError as e:
        raise request_error(e) from e
    extra = request.model_extra or {}
    refused = [
        name
        for name, harmless in _MEANINGFUL.items()
        if extra.get(name) is not None and extra[name] not in harmless
    ]
    if refused:
        raise RequestError(
            "Not supported, and leaving it out would change the answer: "
            + ", ".join(f"{name!r}" for name in refused),
            param=refused[0],
            code="unsupported_parameter",
        )
    return request


def request_error(error: ValidationError) -> RequestError:
    """All that pydantic found, a line each; unions give the most telling of their branches."""
    lines: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        where = ""
        for part in problem["loc"]:
            if isinstance(part, int):
                where += f"[{part}]"
            elif part.isidentifier() and part not in ("str", "int"):
                where += f".{part}" if where else part
        lines.setdefault(where, f"{where or 'request'}: {problem['msg']}")
    return RequestError(listing(lines.values(), limit=20), param=next(iter(lines)) or None)


def ignored(request: SamplingRequest) -> list[str]:
    """Names of the fields that were sent and have no effect."""
    sent = {name for name, value in (request.model_extra or {}).items() if value is not None}
    if request.user is not None:
        sent.add("user")
    return sorted(sent)


def unknown(request: SamplingRequest) -> list[str]:
    """Names among `ignored` that no version of the protocol knows: a caller's mistake."""
    return [n for n in ignored(request) if n not in _NO_EFFECT and n not in _MEANINGFUL]
