"""The tools and tool calls of a request, in OpenAI's shapes."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from .counts import at_most

MAX_TOOLS = 512
MAX_CALLS = 512  # maximum number of tool calls in one message
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\s\"'<>{}\[\]()|]+$")]
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
INPUT = "input"  # the argument of the function that the model sees in place of a custom tool


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

    @property
    def input_grammar(self) -> InputGrammar | None:
        """Return the grammar of a custom tool's input; None: there is none."""
        return None


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

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, value: Any) -> Any:
        """Accept the grammar's fields next to the type, as the Responses API has them."""
        if isinstance(value, dict) and "grammar" not in value and "definition" in value:
            return {"type": value.get("type"), "grammar": {**value, "type": None}}
        return value


class Custom(_Shape):
    """The fields of a custom tool."""

    name: Name
    description: str | None = None
    format: InputFormat | None = None

    @property
    def grammar(self) -> InputGrammar | None:
        """Return the grammar of the input; None: the input may be any text."""
        return self.format.grammar if self.format and self.format.type == "grammar" else None


class InputFunction(Function):
    """The function that the model sees in place of a custom tool."""

    held: InputGrammar | None = Field(None, exclude=True)

    @property
    def input_grammar(self) -> InputGrammar | None:
        """Return the grammar of the input; overrides `Function.input_grammar`."""
        return self.held


class CustomTool(_Shape):
    """A tool that takes one text; the model sees a function with one string."""

    type: Literal["custom"]
    custom: Custom

    @cached_property
    def function(self) -> Function:
        """Return the function that the model sees."""
        grammar = self.custom.grammar
        text = {"type": "string"}
        if grammar:
            text["description"] = f"It follows this {grammar.syntax} grammar:\n{grammar.definition}"
        return InputFunction(
            held=grammar,
            name=self.custom.name,
            description=self.custom.description,
            parameters={
                "type": "object",
                "properties": {INPUT: text},
                "required": [INPUT],
                "additionalProperties": False,
            },
        )


class OtherTool(_Shape):
    """A tool of a kind that no client of this server runs; it is refused."""

    type: str = Field("", max_length=256)


def _kind_of(tool: Any) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    # an object without a type is reported as a function that lacks it
    kind = "function" if kind is None else kind
    # with a blank, so that paths in errors leave the tag out
    return f"a {kind}" if kind in ("function", "custom") else "another"


Tool = FunctionTool | CustomTool
AnyTool = Annotated[
    Annotated[FunctionTool, Tag("a function")]
    | Annotated[CustomTool, Tag("a custom")]
    | Annotated[OtherTool, Tag("another")],
    Discriminator(_kind_of),
]


class ToolName(_Shape):
    """The name of a tool."""

    name: Name


class NamedTool(_Shape):
    """A tool that the model must call."""

    type: Literal["function"]
    function: ToolName

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return self.function.name


class Allowed(_Shape):
    """A subset of the tools, and whether the model must call one of them."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool], Field(min_length=1), at_most(MAX_TOOLS, "tools")]


class AllowedTools(_Shape):
    """The value of `tool_choice` that limits calls to some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: Allowed


def _as_functions(choice: Any) -> Any:
    """Return a choice of tools in which custom tools are the functions that the model sees."""
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "custom" and "custom" in choice:
        return {**choice, "type": "function", "function": choice["custom"]}
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict) and isinstance(allowed.get("tools"), list):
        tools = [_as_functions(tool) for tool in allowed["tools"][: MAX_TOOLS + 1]]
        return {**choice, "allowed_tools": {**allowed, "tools": tools}}
    return choice


# "any" is Mistral's word for "required".
ToolChoice = Annotated[
    Literal["none", "auto", "required", "any"] | NamedTool | AllowedTools,
    BeforeValidator(_as_functions),
]


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

    @model_validator(mode="before")
    @classmethod
    def _as_function(cls, value: Any) -> Any:
        custom = value.get("custom") if isinstance(value, dict) else None
        if not isinstance(custom, dict) or value.get("type") != "custom":
            return value
        called = CalledCustom.model_validate(custom)
        function = {"name": called.name, "arguments": arguments_of(called.input)}
        return {**value, "function": function}


def arguments_of(text: str) -> str:
    """Return the arguments by which the model sees the input of a custom tool."""
    return json.dumps({INPUT: text}, ensure_ascii=False)
