"""The requests that are accepted, in OpenAI's shapes. Validated once a request, never a token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from wherry.errors import told

from ..core.interface import MAX_TOP_LOGPROBS
from .counts import at_most
from .errors import RequestError
from .sampling_fields import SamplingFields
from .tool_shapes import MAX_CALLS, MAX_TOOLS, MessageCall, Tool, ToolChoice

MAX_MESSAGES = 4096
MAX_PARTS = 4096  # of one message's content
MAX_FIELDS = 256  # of a request, unknown ones included
_MAX_WHERE = 200  # characters of a field's path in an error: a part of it may be the sender's

StopString = Annotated[str, Field(max_length=1024)]


def prompt_value(value: Any) -> Any:
    """A text, texts, token ids, or lists of them: the first item says which.

    Not a pydantic union: that would try each item as everything, and keep an error for each. Here
    the first error is the last.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)):
        raise _not_a_prompt("", value)
    if not value or type(value[0]) is int:
        return _ids(value, "")
    if isinstance(value[0], str):
        wrong = next((i for i, p in enumerate(value) if not isinstance(p, str)), None)
        if wrong is not None:
            raise _not_a_prompt(f"item {wrong} ", value[wrong])
        return list(value)
    return [_ids(ids, f"item {i} ") for i, ids in enumerate(value)]


def _ids(value: Any, where: str) -> list[int]:
    if not isinstance(value, (list, tuple)):
        raise _not_a_prompt(where, value)
    for i, token in enumerate(value):
        if type(token) is not int:
            raise _not_a_prompt(f"{where}item {i} ", token)
        if not 0 <= token < 2**31:
            raise PydanticCustomError("prompt", f"{where}item {i} is {token}; token ids are from 0")
    return list(value)


def _not_a_prompt(where: str, value: Any) -> PydanticCustomError:
    kinds = {type(None): "null", dict: "an object", str: "a text", list: "a list", int: "a number"}
    found = kinds.get(type(value), f"of type {type(value).__name__}")
    return PydanticCustomError(
        "prompt",
        f"{where}is {found}; a prompt is a text, a list of texts, a list of token ids, or a list "
        "of lists of token ids",
    )


class RequestShape(BaseModel):
    """Fields that are not known are kept: `ignored` names them."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    _unused: list[str] = PrivateAttr(default_factory=list)

    def note_unused(self, name: str) -> None:
        """A field turned out to have no effect on this model."""
        self._unused.append(name)

    @property
    def unused(self) -> Sequence[str]:
        """Fields of which `note_unused` was told."""
        return self._unused


class StreamOptions(RequestShape):
    """How a stream ends."""

    include_usage: bool = False


class ContentPart(RequestShape):
    """One part of a message's content; only text is understood."""

    type: str
    text: str | None = None


_Parts = Annotated[list[ContentPart], Field(fail_fast=True)]


class Message(RequestShape):
    """One message; further fields are handed to the model's template as they are.

    What the model wrote to itself may come back as `reasoning_content`, or as `reasoning`.
    """

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | _Parts | None, at_most(MAX_PARTS, "parts")] = None
    name: str | None = Field(None, max_length=1024)
    tool_calls: Annotated[
        list[MessageCall] | None, Field(fail_fast=True), at_most(MAX_CALLS, "calls")
    ] = None
    tool_call_id: str | None = Field(None, max_length=1024)  # of a tool's message
    reasoning_content: str | None = None
    reasoning: str | None = None


class SamplingRequest(RequestShape, SamplingFields):
    """What both endpoints share. None: generation_config.json, else OpenAI's default.

    What the output is held to (`wherry.runtime.grammar.fields`): OpenAI's response_format, vLLM's
    structured_outputs and guided_*, llama.cpp's grammar and json_schema.
    """

    model: str = Field("", max_length=1024)
    max_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    n: int | None = Field(None, ge=1, le=128)
    seed: int | None = Field(None, ge=-(2**63), lt=2**64)
    stop: StopString | list[StopString] | None = Field(None, max_length=1024)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = Field(None, max_length=1024)
    safety_identifier: str | None = Field(None, max_length=1024)
    cache_salt: str | None = Field(None, max_length=1024)  # vLLM's: who shares cached prefixes
    max_drafts: int | None = Field(None, ge=0, le=64)  # draft tokens a step; 0: none
    # vLLM's: alternatives of each token of the prompt; false is as good as nothing.
    prompt_logprobs: Annotated[
        int | None,
        Field(ge=0, le=MAX_TOP_LOGPROBS),
        BeforeValidator(lambda v: None if v is False else v),
    ] = None
    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    guided_json: dict[str, Any] | str | bool | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    grammar: str | None = None
    json_schema: dict[str, Any] | bool | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings as a tuple."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


class Prediction(RequestShape):
    """What the answer is expected to repeat: it costs less time where it does."""

    type: Literal["content"] = "content"
    content: Annotated[str | _Parts, at_most(MAX_PARTS, "parts")]


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ChatRequest(SamplingRequest):
    """POST /v1/chat/completions."""

    messages: Annotated[list[Message], Field(min_length=1), at_most(MAX_MESSAGES, "messages")]
    max_completion_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    prediction: Prediction | None = None
    tools: Annotated[list[Tool] | None, Field(fail_fast=True), at_most(MAX_TOOLS, "tools")] = None
    tool_choice: ToolChoice | None = None  # None: "auto" if there are tools
    parallel_tool_calls: bool | None = None  # false: one call at most
    reasoning_effort: Effort | None = None
    enable_thinking: bool | None = None  # as templates know it; before reasoning_effort
    # How reasoning is told from text. "none": it is not, and stays in the content, as the model
    # writes it.
    reasoning_format: Literal["auto", "deepseek", "none"] | None = None
    separate_reasoning: bool | None = None  # false: as "none"
    include_reasoning: bool | None = None  # false: it is left out of the answer
    chat_template_kwargs: dict[str, Any] | None = None  # variables of the template; before all
    # vLLM's: whether the assistant's turn is opened, and whether its last message goes on instead.
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


TokenJson = Annotated[int, Field(ge=0, lt=2**31)]
PromptJson = str | list[str] | list[TokenJson] | list[list[TokenJson]]


class CompletionRequest(SamplingRequest):
    """POST /v1/completions. `prompt`: a text, texts, token ids, or several lists of them."""

    prompt: Annotated[
        str | list[str] | list[int] | list[list[int]],
        PlainValidator(prompt_value, json_schema_input_type=PromptJson),
    ]
    suffix: str | None = None  # what follows: the model fills the gap
    max_tokens: int | None = Field(None, ge=0, le=2**31 - 1)  # 0: with echo, what the prompt is
    echo: bool | None = None  # the prompt's text, with logprobs where asked for, comes first
    logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)


# Fields that clients send and that cannot change what the model writes here.
_NO_EFFECT = frozenset(
    "metadata prompt_cache_key prompt_cache_retention service_tier store verbosity".split()
)
# Fields whose neglect would change the answer; each with the values that ask for nothing.
_MEANINGFUL: dict[str, tuple[Any, ...]] = {
    "functions": ([],),  # and function_call: OpenAI's before `tools`
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
    "best_of": (1,),
}

_INSTEAD = {"functions": " (send 'tools')", "function_call": " (send 'tool_choice')"}

R = TypeVar("R", bound=RequestShape)
V = TypeVar("V", bound=BaseModel)


def parse(kind: type[R], fields: Any) -> R:
    """Validate a request's fields.

    Raises:
        RequestError: see `validated` and `refuse`.
    """
    request = validated(kind, fields)
    refuse(request, _MEANINGFUL)
    return request


def validated(kind: type[V], fields: Any) -> V:
    """A request of any protocol.

    Raises:
        RequestError: a field is missing or out of range; the message lists all of them, `param` is
            the first.
    """
    if isinstance(fields, Mapping) and len(fields) > MAX_FIELDS:
        raise RequestError(f"The request has {len(fields)} fields; at most {MAX_FIELDS} are read")
    if (where := _half_a_character(fields)) is not None:
        raise RequestError(
            f"{where or 'request'} holds half of a surrogate pair (as \\ud800), which is no "
            "character: a text was cut in the middle of one",
            param=where or None,
        )
    try:
        return kind.model_validate(fields)
    except ValidationError as e:
        raise request_error(e) from e


def refuse(request: BaseModel, meaningful: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse fields that are not known here, and whose neglect would change the answer.

    Args:
        request: with its unknown fields.
        meaningful: their names, each with the values that ask for nothing.

    Raises:
        RequestError: naming them all.
    """
    extra = request.model_extra or {}
    refused = [
        name
        for name, harmless in meaningful.items()
        if extra.get(name) is not None and extra[name] not in harmless
    ]
    if refused:
        raise RequestError(
            "Not supported, and leaving it out would change the answer: "
            + ", ".join(f"{name!r}{_INSTEAD.get(name, '')}" for name in refused),
            param=refused[0],
            code="unsupported_parameter",
        )


def _half_a_character(fields: Any) -> str | None:
    """Where a text is that UTF-8 cannot hold; None if there is none."""
    for where, text in _texts(fields, ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            return where[:_MAX_WHERE].encode("ascii", "replace").decode()
    return None


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """All texts of a value, names of fields too, each with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(name, where)
            yield from _texts(item, f"{where}.{name}" if where else str(name))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            if not isinstance(item, (int, float)):  # token ids come by the hundred thousand
                yield from _texts(item, f"{where}[{i}]")


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
        where = where[:_MAX_WHERE]
        lines.setdefault(where, f"{where or 'request'}: {problem['msg']}")
    return RequestError(told(lines.values()), param=next(iter(lines)) or None)


def ignored(request: RequestShape) -> list[str]:
    """Names of the fields that were sent and have no effect."""
    return sorted([*not_known(request), *request.unused])


def not_known(request: BaseModel) -> list[str]:
    """Names of the fields that were sent and that its class does not have."""
    return sorted(n for n, value in (request.model_extra or {}).items() if value is not None)


def unknown(request: RequestShape) -> list[str]:
    """Names among `ignored` that no version of the protocol knows: a caller's mistake."""
    known = _NO_EFFECT | _MEANINGFUL.keys() | set(request.unused)
    return [n for n in ignored(request) if n not in known]
