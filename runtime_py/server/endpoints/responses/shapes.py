"""The requests that the server accepts in the shapes of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, PrivateAttr, Tag

from ....core.interface import MAX_TOP_LOGPROBS
from ..shapes.counts import at_most
from ..shapes.fields import SamplingFields
from ..shapes.kinds import MAX_PARTS

MAX_ITEMS = 4096  # maximum number of items in one request
MAX_TOOLS = 512
MAX_METADATA = 16  # maximum number of names in metadata, as in OpenAI's API
LOGPROBS = "message.output_text.logprobs"

Id = Annotated[str, Field(min_length=1, max_length=256)]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]] | None,
    at_most(MAX_METADATA, "names"),
]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class Part(_Shape):
    """One part of an item's content: a text, or an image as a data: URL."""

    type: str = Field(max_length=256)
    text: str | None = None
    refusal: str | None = None
    image_url: Any = None
    file_id: Any = None
    detail: Literal["auto", "low", "high", "original"] | None = None


_Parts = Annotated[list[Part], Field(fail_fast=True)]
Content = Annotated[str | _Parts, at_most(MAX_PARTS, "parts")]


class Tool(_Shape):
    """A tool that clients run: a function, a custom tool, a namespace of them, or a search."""

    type: str = Field(max_length=256)
    name: str | None = Field(None, max_length=256)
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: dict[str, Any] | None = None  # format of a custom tool's input
    execution: Literal["server", "client"] | None = None  # who runs a search for tools
    # tools of a namespace
    tools: Annotated[list[Tool] | None, Field(fail_fast=True), at_most(MAX_TOOLS, "tools")] = None

    def described(self) -> dict[str, Any]:
        """Return the tool as a response repeats it; a function with all fields."""
        shown = self.model_dump(exclude_unset=True)
        if self.type != "function":
            return shown
        empty = {"description": None, "parameters": None}
        return {**empty, **shown, "strict": bool(self.strict)}


class MessageItem(_Shape):
    """An item with a message of any role."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content
    phase: Literal["commentary", "final_answer"] | None = None  # phase of an assistant's message


class CallItem(_Shape):
    """An item with a function call."""

    type: Literal["function_call"]
    call_id: Id
    name: str = Field(max_length=256)
    namespace: str | None = Field(None, max_length=256)
    arguments: str


class CustomCallItem(_Shape):
    """An item with a call of a custom tool."""

    type: Literal["custom_tool_call"]
    call_id: Id
    name: str = Field(max_length=256)
    namespace: str | None = Field(None, max_length=256)
    input: str


class SearchCallItem(_Shape):
    """An item with a search for tools; one that OpenAI's servers ran has no call_id."""

    type: Literal["tool_search_call"]
    call_id: Id | None = None
    arguments: Any = None


class ShellCallItem(_Shape):
    """An item with a call of the shell that OpenAI's models know."""

    type: Literal["local_shell_call"]
    call_id: Id
    action: dict[str, Any]


class CallOutputItem(_Shape):
    """An item with the result of a call; `local_shell_call_output` may have the call's id as id."""

    type: Literal["function_call_output", "custom_tool_call_output", "local_shell_call_output"]
    call_id: Annotated[Id, Field(validation_alias=AliasChoices("call_id", "id"))]
    output: Content


class SearchOutputItem(_Shape):
    """An item with the tools that a search found."""

    type: Literal["tool_search_output"]
    call_id: Id | None = None
    tools: Annotated[list[Tool], Field(fail_fast=True), at_most(MAX_TOOLS, "tools")]


class AdditionalToolsItem(_Shape):
    """An item that adds tools to those of the request."""

    type: Literal["additional_tools"]
    tools: Annotated[list[Tool], Field(fail_fast=True), at_most(MAX_TOOLS, "tools")]


class ReasoningItem(_Shape):
    """An item with reasoning of an earlier turn."""

    type: Literal["reasoning"]
    content: Annotated[_Parts | None, at_most(MAX_PARTS, "parts")] = None
    summary: Annotated[_Parts | None, at_most(MAX_PARTS, "parts")] = None


class CompactionItem(_Shape):
    """An item with the summary that POST /v1/responses/compact returned."""

    type: Literal["compaction"]
    encrypted_content: str


class ReferenceItem(_Shape):
    """An item that refers to a stored item."""

    type: Literal["item_reference"] | None = None
    id: Id


class OtherItem(_Shape):
    """An item of a kind that this server does not support."""

    type: str = Field("", max_length=256)


def _kind_of(item: Any) -> str:
    if not isinstance(item, dict):
        return str(getattr(item, "type", "other"))
    kind = item.get("type")
    if kind is None:
        return "message" if "role" in item else "item_reference" if "id" in item else "other"
    return kind if isinstance(kind, str) and kind in _KINDS else "other"


ACCEPTED = (
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "tool_search_call",
    "tool_search_output",
    "local_shell_call",
    "local_shell_call_output",
    "additional_tools",
    "reasoning",
    "compaction",
    "item_reference",
)
_KINDS = frozenset(ACCEPTED)
Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[CallOutputItem, Tag("function_call_output")]
    | Annotated[CustomCallItem, Tag("custom_tool_call")]
    | Annotated[CallOutputItem, Tag("custom_tool_call_output")]
    | Annotated[SearchCallItem, Tag("tool_search_call")]
    | Annotated[SearchOutputItem, Tag("tool_search_output")]
    | Annotated[ShellCallItem, Tag("local_shell_call")]
    | Annotated[CallOutputItem, Tag("local_shell_call_output")]
    | Annotated[AdditionalToolsItem, Tag("additional_tools")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[CompactionItem, Tag("compaction")]
    | Annotated[ReferenceItem, Tag("item_reference")]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(_kind_of),
]
Items = Annotated[list[Item], Field(fail_fast=True), at_most(MAX_ITEMS, "items")]


class ToolChoice(_Shape):
    """A function that must be called, or some of the tools."""

    type: str = Field(max_length=256)
    name: str | None = Field(None, max_length=256)
    namespace: str | None = Field(None, max_length=256)
    mode: Literal["auto", "required"] | None = None
    tools: Annotated[list[dict[str, Any]] | None, at_most(MAX_TOOLS, "tools")] = None


class TextConfig(_Shape):
    """The format of the output text."""

    format: dict[str, Any] | None = None


class Reasoning(_Shape):
    """The effort of reasoning."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


class ConversationRef(_Shape):
    """A reference to a stored conversation."""

    id: Id


class CountRequest(_Shape):
    """The body of POST /v1/responses/input_tokens: the fields that precede the output."""

    model: str = Field("", max_length=1024)
    input: str | Items = ""
    instructions: str | None = None
    previous_response_id: Id | None = None
    conversation: Id | ConversationRef | None = None
    tools: Annotated[list[Tool] | None, Field(fail_fast=True), at_most(MAX_TOOLS, "tools")] = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning: Reasoning | None = None
    text: TextConfig | None = None
    truncation: Literal["auto", "disabled"] | None = None

    @property
    def conversation_id(self) -> str | None:
        """Return the conversation's id, which the request gives as a string or an object."""
        given = self.conversation
        return given.id if isinstance(given, ConversationRef) else given


class ResponsesRequest(CountRequest, SamplingFields):
    """The body of POST /v1/responses; as an extension, it has the sampling fields of chats."""

    stream: bool | None = None
    store: bool | None = None
    include: Annotated[list[str] | None, at_most(64, "names")] = None
    max_output_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    top_logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    metadata: Metadata = None
    user: str | None = Field(None, max_length=1024)
    safety_identifier: str | None = Field(None, max_length=1024)
    prompt_cache_key: str | None = Field(None, max_length=1024)
    background: bool | None = None
    # false: the prompt is computed, so that a response that continues this one begins sooner
    generate: bool | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**64)

    _left_out: list[str] = PrivateAttr(default_factory=list)

    def note_left_out(self, names: Sequence[str]) -> None:
        """Record parts of the request that are left out."""
        self._left_out.extend(names)

    @property
    def left_out(self) -> Sequence[str]:
        """Return the parts of the request that are left out; known after planning."""
        return self._left_out

    @property
    def wants_logprobs(self) -> bool:
        """Tell whether the client asks for log probabilities."""
        return bool(self.top_logprobs) or LOGPROBS in (self.include or ())


class CompactRequest(_Shape):
    """The body of POST /v1/responses/compact."""

    model: str = Field(min_length=1, max_length=1024)
    input: str | Items | None = None
    instructions: str | None = None
    previous_response_id: Id | None = None
    stream: bool | None = None


class ConversationRequest(_Shape):
    """The body of POST /v1/conversations (first items), or of POST to one (new metadata)."""

    items: Items | None = None
    metadata: Metadata = None


class ItemsRequest(_Shape):
    """The body of POST /v1/conversations/{id}/items."""

    items: Items


# Fields that would change the response if they were ignored, each with its harmless values.
MEANINGFUL: dict[str, tuple[Any, ...]] = {"prompt": ()}
