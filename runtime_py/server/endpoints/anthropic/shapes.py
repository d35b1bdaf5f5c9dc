"""The requests that the server accepts in the shapes of Anthropic's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from ..shapes.counts import at_most
from ..shapes.kinds import MAX_MESSAGES, MAX_PARTS, StopString

MAX_TOOLS = 512
MAX_STOPS = 1024


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class TextBlock(_Shape):
    """A content block with a text."""

    type: Literal["text"]
    text: str


class ThinkingBlock(_Shape):
    """A content block with the reasoning of an earlier turn."""

    type: Literal["thinking"]
    thinking: str


class RedactedThinkingBlock(_Shape):
    """A content block with encrypted reasoning of an earlier turn; the server drops it."""

    type: Literal["redacted_thinking"]


class ToolUseBlock(_Shape):
    """A content block with a tool call of an earlier turn."""

    type: Literal["tool_use"]
    id: str = Field(max_length=1024)
    name: str = Field(max_length=256)
    input: dict[str, Any]


class ToolReferenceBlock(_Shape):
    """A block of a tool's result that names a tool which may be called from now on."""

    type: Literal["tool_reference"]
    tool_name: str = Field(max_length=256)


class ImageSource(_Shape):
    """The file of an image: base64, or a data: URL; its bytes tell its format."""

    type: str
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class ImageBlock(_Shape):
    """A content block with an image, of a user or in a tool's result."""

    type: Literal["image"]
    source: ImageSource


class OtherBlock(_Shape):
    """A content block of a kind that this server does not support."""

    type: str


def _by_kind(*kinds: str) -> Discriminator:
    """Return what finds the class of a block by its type; "other": none of these."""

    def kind_of(block: Any) -> str:
        kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
        return kind if isinstance(kind, str) and kind in kinds else "other"

    return Discriminator(kind_of)


_TextBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ToolReferenceBlock, Tag("tool_reference")]
    | Annotated[OtherBlock, Tag("other")],
    _by_kind("text", "tool_reference"),
]
_ResultBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[ToolReferenceBlock, Tag("tool_reference")]
    | Annotated[OtherBlock, Tag("other")],
    _by_kind("text", "image", "tool_reference"),
]
TextOrBlocks = Annotated[
    str | Annotated[list[_TextBlock], Field(fail_fast=True)], at_most(MAX_PARTS, "blocks")
]
ResultOrBlocks = Annotated[
    str | Annotated[list[_ResultBlock], Field(fail_fast=True)], at_most(MAX_PARTS, "blocks")
]


class ToolResultBlock(_Shape):
    """A content block with the result of a tool call."""

    type: Literal["tool_result"]
    tool_use_id: str = Field(max_length=1024)
    content: ResultOrBlocks | None = None
    is_error: bool | None = None


Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[ToolResultBlock, Tag("tool_result")]
    | Annotated[OtherBlock, Tag("other")],
    _by_kind("text", "image", "thinking", "redacted_thinking", "tool_use", "tool_result"),
]


class Turn(_Shape):
    """One message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[
        str | Annotated[list[Block], Field(fail_fast=True)], at_most(MAX_PARTS, "blocks")
    ]


class Tool(_Shape):
    """A tool that the client can run."""

    type: str | None = None  # kind of the tool; "custom" is the same as None
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class ToolChoice(_Shape):
    """Whether tools may or must be called, and which."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(_Shape):
    """Whether the model may reason before it answers; a budget has no effect."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    # How thinking is shown; "omitted": thinking blocks have no text.
    display: Literal["summarized", "omitted"] | None = None


class Metadata(_Shape):
    """Metadata of the request: the user's id."""

    user_id: str | None = Field(None, max_length=1024)


class OutputConfig(_Shape):
    """The effort of reasoning, and the format of the output."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: dict[str, Any] | None = None


class CountRequest(_Shape):
    """The body of POST /v1/messages/count_tokens."""

    model: str = Field("", max_length=1024)
    messages: Annotated[list[Turn], Field(min_length=1), at_most(MAX_MESSAGES, "messages")]
    system: TextOrBlocks | None = None
    tools: Annotated[list[Tool] | None, Field(fail_fast=True), at_most(MAX_TOOLS, "tools")] = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: dict[str, Any] | None = None  # older name of `output_config.format`

    @property
    def thinks(self) -> bool:
        """Tell whether the request asks for reasoning."""
        return self.thinking is not None and self.thinking.type != "disabled"

    @property
    def effort(self) -> str | None:
        """Return the requested effort of reasoning; None: the model's default."""
        return self.output_config.effort if self.output_config else None


class MessagesRequest(CountRequest):
    """The body of POST /v1/messages."""

    max_tokens: int = Field(ge=1, le=2**31 - 1)
    stop_sequences: Annotated[list[StopString] | None, at_most(MAX_STOPS, "texts")] = None
    stream: bool | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1, lt=2**31)
    metadata: Metadata | None = None

    def unused(self, ignored: Sequence[str]) -> list[str]:
        """Return the fields without effect on this model, out of those of the equivalent chat."""
        names = []
        if self.effort and ("reasoning_effort" in ignored or not self.thinks):
            names.append("output_config.effort")
        if self.thinks and "enable_thinking" in ignored:
            names.append("thinking")
        return names


# Fields that would change the response if they were ignored, each with its harmless values.
MEANINGFUL: dict[str, tuple[Any, ...]] = {
    "mcp_servers": ([],),
    "container": (),
}
