"""The types of request fields; fields.py says which field has which type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, PrivateAttr
from pydantic_core import PydanticCustomError

from ..core.interface import MAX_TOP_LOGPROBS
from .counts import at_most
from .tools import MAX_CALLS, MAX_TOOLS, AnyTool, MessageCall

MAX_MESSAGES = 4096
MAX_PARTS = 4096  # maximum number of parts in one message's content
MAX_BIASES = 4096  # maximum number of tokens in logit_bias
MAX_ALLOWED = 2**18  # maximum number of tokens in allowed_token_ids; vocabularies have fewer

TokenId = Annotated[int, Field(ge=0, lt=2**31)]
Word = Annotated[str, Field(min_length=1, max_length=1024)]
StopString = Annotated[str, Field(max_length=1024)]

Biases = Annotated[
    dict[TokenId, Annotated[float, Field(ge=-100, le=100)]] | None, at_most(MAX_BIASES, "tokens")
]
TokenIds = Annotated[list[TokenId] | None, Field(min_length=1), at_most(MAX_ALLOWED, "tokens")]
Stops = Annotated[StopString | list[StopString] | None, Field(max_length=1024)]
Schema = dict[str, Any] | bool | None
SchemaOrText = dict[str, Any] | str | bool | None
# The field prompt_logprobs: a number of alternatives, or false for none.
PromptLogprobs = Annotated[
    int | None,
    Field(ge=0, le=MAX_TOP_LOGPROBS),
    BeforeValidator(lambda v: None if v is False else v),
]


def prompt_value(value: Any) -> Any:
    """Validate a prompt: a text, texts, token ids, or lists of them; the first item decides.

    A pydantic union would try each item as every kind and collect an error for each; here the first
    error ends the validation.
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
    """A request that stores unknown fields, so that `ignored` can list them."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    _unused: list[str] = PrivateAttr(default_factory=list)

    def note_unused(self, name: str) -> None:
        """Record a field that has no effect on this model."""
        self._unused.append(name)

    @property
    def unused(self) -> Sequence[str]:
        """Return the fields that `note_unused` recorded."""
        return self._unused


class StreamOptions(RequestShape):
    """The options of a stream: whether its end reports the usage."""

    include_usage: bool = False


class ContentPart(RequestShape):
    """One part of a message's content; only text is supported."""

    type: str
    text: str | None = None


_Parts = Annotated[list[ContentPart], Field(fail_fast=True)]


class Message(RequestShape):
    """One message of a chat; the model's template receives further fields as they are.

    Reasoning of earlier turns may come as `reasoning_content` or as `reasoning`.
    """

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | _Parts | None, at_most(MAX_PARTS, "parts")] = None
    name: str | None = Field(None, max_length=1024)
    tool_calls: Annotated[
        list[MessageCall] | None, Field(fail_fast=True), at_most(MAX_CALLS, "calls")
    ] = None
    # In a tool's message, the id of the call that it answers.
    tool_call_id: str | None = Field(None, max_length=1024)
    reasoning_content: str | None = None
    reasoning: str | None = None


class Prediction(RequestShape):
    """Text that the output probably repeats, which then takes less time."""

    type: Literal["content"] = "content"
    content: Annotated[str | _Parts, at_most(MAX_PARTS, "parts")]


Messages = Annotated[list[Message], Field(min_length=1), at_most(MAX_MESSAGES, "messages")]
Tools = Annotated[list[AnyTool] | None, Field(fail_fast=True), at_most(MAX_TOOLS, "tools")]
TokenJson = Annotated[int, Field(ge=0, lt=2**31)]
PromptJson = str | list[str] | list[TokenJson] | list[list[TokenJson]]
Prompt = Annotated[
    str | list[str] | list[int] | list[list[int]],
    PlainValidator(prompt_value, json_schema_input_type=PromptJson),
]
