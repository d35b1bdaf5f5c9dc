"""The tools and tool calls of a request, in OpenAI's shapes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .counts import at_most

MAX_TOOLS = 512
MAX_CALLS = 512  # maximum number of tool calls in one message
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\s\"'<>{}\[\]()|]+$")]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class Function(_Shape):
    """A function that the model may call; without `parameters` it takes no arguments.

    `strict` enforces the schema of the arguments.
    """

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(_Shape):
    """A tool that is a function, whose arguments are JSON."""

    type: Literal["function"]
    function: Function


class InputGrammar(_Shape):
    """The grammar of a custom tool's input."""

    syntax: Literal["lark", "regex"]
    definition: str


class InputFormat(_Shape):
    """The format of a custom tool's input: any text, or a grammar, which is enforced."""

    type: Literal["text", "grammar"]
    grammar: InputGrammar | None = None


class Custom(_Shape):
    """The fields of a custom tool."""

    name: Name
    description: str | None = None
    format: InputFormat | None = None


class CustomTool(_Shape):
    """A tool that takes one text; the model sees a function with one string."""

    type: Literal["custom"]
    custom: Custom


class OtherTool(_Shape):
    """A tool of a kind that no client of this server runs; it is refused."""

    type: str = Field("", max_length=256)


AnyTool = FunctionTool | CustomTool | OtherTool


class ToolName(_Shape):
    """The name of a tool."""

    name: Name


class NamedTool(_Shape):
    """A tool that the model must call."""

    type: Literal["function"]
    function: ToolName


class Allowed(_Shape):
    """A subset of the tools, and whether the model must call one of them."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool], Field(min_length=1), at_most(MAX_TOOLS, "tools")]


class AllowedTools(_Shape):
    """The value of `tool_choice` that limits calls to some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: Allowed


# "any" is Mistral's word for "required".
ToolChoice = Literal["none", "auto", "required", "any"] | NamedTool | AllowedTools


class CalledFunction(_Shape):
    """The function of a tool call.

    `arguments` is JSON as a text, and an object is accepted, too.
    """

    name: str = Field(max_length=256)
    arguments: str | dict[str, Any] = ""


class CalledCustom(_Shape):
    """The custom tool of a call, and its input."""

    name: str = Field(max_length=256)
    input: str


class MessageCall(_Shape):
    """A tool call in an assistant's message of the conversation.

    A call of a custom tool becomes the call of the function that the model sees.
    """

    id: str | None = Field(None, max_length=1024)
    type: Literal["function", "custom"] = "function"
    function: CalledFunction
    custom: CalledCustom | None = None
