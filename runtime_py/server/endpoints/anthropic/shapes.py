"""The requests that are accepted, in Anthropic's shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, PrivateAttr, Tag

from ....request.counts import at_most
from ....request.shapes import MAX_MESSAGES, MAX_PARTS, StopString

MAX_TOOLS = 512
MAX_STOPS = 1024


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class TextBlock(_Shape):
    """A text."""

    type: Literal["text"]
    text: str


class ThinkingBlock(_Shape):
    """What the model wrote to itself in a turn that comes back."""

    type: Literal["thinking"]
    thinking: str


class RedactedThinkingBlock(_Shape):
    """Thinking that nobody but its author reads: it is left out."""

    type: Literal["redacted_thinking"]


class ToolUseBlock(_Shape):
    """A call of a tool in a turn that comes back."""

    type: Literal["tool_use"]
    id: str = Field(max_length=1024)
    name: str = Field(max_length=256)
    input: dict[str, Any]


class OtherBlock(_Shape):
    """What this server does not read."""

    type: str


def _kind_of(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    return kind if isinstance(kind, str) and kind in _KINDS else "other"


_KINDS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
_TextBlocks = Annotated[
    list[
        Annotated[
            Annotated[TextBlock, Tag("text")] | Annotated[OtherBlock, Tag("other")],
            Discriminator(lambda block: "text" if _kind_of(block) == "text" else "other"),
        ]
    ],
    Field(fail_fast=True),
]
TextOrBlocks = Annotated[str | _TextBlocks, at_most(MAX_PARTS, "blocks")]


class ToolResultBlock(_Shape):
    """What a tool answered."""

    type: Literal["tool_result"]
    tool_use_id: str = Field(max_length=1024)
    content: TextOrBlocks | None = None
    is_error: bool | None = None


Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[ToolResultBlock, Tag("tool_result")]
    | Annotated[OtherBlock, Tag("other")],
    Discriminator(_kind_of),
]


class Turn(_Shape):
    """One message."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[
        str | Annotated[list[Block], Field(fail_fast=True)], at_most(MAX_PARTS, "blocks")
    ]


class Tool(_Shape):
    """A tool that the client runs."""

    type: str | None = None  # "custom": as if it were not there
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class ToolChoice(_Shape):
    """Whether tools are called, and which."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(_Shape):
    """Whether the model may write to itself first; how much cannot be said here."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    display: Literal["summarized", "omitted"] | None = None  # "omitted": blocks without their text


class Metadata(_Shape):
    """Who asks."""

    user_id: str | None = Field(None, max_length=1024)


class OutputConfig(_Shape):
    """How much effort is taken, and what the answer is held to."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: dict[str, Any] | None = None


class CountRequest(_Shape):
    """POST /v1/messages/count_tokens."""

    model: str = Field("", max_length=1024)
    messages: Annotated[list[Turn], Field(min_length=1), at_most(MAX_MESSAGES, "messages")]
    system: TextOrBlocks | None = None
    tools: Annotated[list[Tool] | None, Field(fail_fast=True), at_most(MAX_TOOLS, "tools")] = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: dict[str, Any] | None = None  # the older name of output_config.format

    @property
    def thinks(self) -> bool:
        """Whether thinking is asked for."""
        return self.thinking is not None and self.thinking.type != "disabled"

    @property
    def effort(self) -> str | None:
        """How much of it."""
        return self.output_config.effort if self.output_config else None


class MessagesRequest(CountRequest):
    """POST /v1/messages."""

    max_tokens: int = Field(ge=1, le=2**31 - 1)
    stop_sequences: Annotated[list[StopString] | None, at_most(MAX_STOPS, "texts")] = None
    stream: bool | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1, lt=2**31)
    metadata: Metadata | None = None
    _unused: list[str] = PrivateAttr(default_factory=list)

    def note_unused(self, names: Sequence[str]) -> None:
        """Remember which fields of the chat that was made of it have no effect with this model."""
        if self.effort and ("reasoning_effort" in names or not self.thinks):
            self._unused.append("output_config.effort")
        if self.thinks and "enable_thinking" in names:
            self._unused.append("thinking")

    @property
    def unused(self) -> Sequence[str]:
        """Fields that have no effect with this model; known when it is planned."""
        return self._unused


# Fields whose neglect would change the answer; each with the values that ask for nothing.
MEANINGFUL: dict[str, tuple[Any, ...]] = {
    "mcp_servers": ([],),
    "container": (),
}
