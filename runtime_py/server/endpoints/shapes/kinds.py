"""The types of request fields; fields.py says which field has which type."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ....core.interface import MAX_TOP_LOGPROBS
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
PromptLogprobs = Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | Literal[False] | None


class RequestShape(BaseModel):
    """A request that may have further fields."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


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
Prompt = str | list[str] | list[TokenJson] | list[list[TokenJson]]
