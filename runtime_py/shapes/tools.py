"""The tools and tool calls of a request, in OpenAI's shapes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .counts import at_most

MAX_TOOLS = 512
MAX_CALLS = 512  # maximum number of tool calls in one message
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\s\"'<>{}\[\]()|]+$")]
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


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

    @property
    def schema_of_arguments(self) -> dict[str, Any]:
        """Return the JSON Schema of a call's arguments."""
        return self.parameters or NO_PARAMETERS


class Tool(_Shape):
    """A tool; functions are the only kind that a client can run."""

    type: Literal["function"]
    function: Function


class FunctionName(_Shape):
    """The name of a function."""

    name: Name


class NamedTool(_Shape):
    """A tool that the model must call."""

    type: Literal["function"]
    function: FunctionName


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


class MessageCall(_Shape):
    """A tool call in an assistant's message of the conversation."""

    id: str | None = Field(None, max_length=1024)
    type: Literal["function"] = "function"
    function: CalledFunction
