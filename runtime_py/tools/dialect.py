"""What a model's chat template tells of its model: how it calls tools, and whether it thinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..request.errors import RequestError
from ..text.chat_template import ChatTemplate
from .families import GENERIC, Family, family_of, family_of_tokens, named
from .reasoning import Thoughts, thoughts_of

_TOOL_VARIABLES = ("tools", "xml_tools", "functions")  # under which templates look for tools
THINKING_VARIABLES = ("enable_thinking", "thinking")
_NEEDLE = "needle7"


class Dialect:
    """How one template takes tools and messages.

    Args:
        template: the model's.
        tool_format: name of the family; None: it is found.
        known: whether a name is that of a token. A template that prints tools and does not say how
            they are called leaves it to the tokens that calls begin with.

    Attributes:
        family: how calls are written.
        thoughts: the marks of reasoning; None: the model does not think in marks.
        native: whether the template tells the model of tools; else the conversation must.

    Raises:
        UsageError: there is no family of this name.
    """

    def __init__(
        self,
        template: ChatTemplate,
        tool_format: str | None = None,
        known: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._template = template
        self.native = bool(self._tool_variables)
        self.family: Family = named(tool_format) if tool_format else self._found(known)
        self.thoughts: Thoughts | None = thoughts_of(template.source)

    def _found(self, known: Callable[[str], bool]) -> Family:
        """A family that the model was trained on, or one that it can be told of."""
        found = family_of(self._template.source)
        if self.native:
            return family_of_tokens(known) if found is GENERIC else found
        return found if found.format.example else GENERIC

    @cached_property
    def _tool_variables(self) -> list[str]:
        return [name for name in _TOOL_VARIABLES if name in self._template.variables]

    def tool_variables(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Variables that tell the template of tools."""
        return {name: list(tools) for name in self._tool_variables} if tools else {}

    def knows(self, variable: str) -> bool:
        """Whether the template looks at a variable."""
        return variable in self._template.variables

    @cached_property
    def takes_text(self) -> bool:
        """Whether arguments of earlier calls are JSON to the template, rather than objects.

        Templates do not say it, so they are asked: one that joins texts fails for an object, and
        one that just prints it writes Python's quotes.
        """
        arguments = {_NEEDLE: "x"}
        as_object = self._tried(_with_call(arguments))
        if _NEEDLE in as_object and f"{{'{_NEEDLE}'" not in as_object:
            return False
        return _NEEDLE in self._tried(_with_call(json.dumps(arguments)))

    @cached_property
    def takes_calls(self) -> bool:
        """Whether the template prints earlier calls; else they have to be texts."""
        return self.native or _NEEDLE in self._tried(_with_call({_NEEDLE: "x"})) or self.takes_text

    @cached_property
    def takes_system(self) -> bool:
        """Whether the template knows system messages."""
        system = {"role": "system", "content": _NEEDLE}
        return _NEEDLE in self._tried([system, {"role": "user", "content": "x"}])

    def _tried(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """What the template makes of messages; "" if it refuses them."""
        try:
            return self._template.render(messages, add_generation_prompt=False)
        except RequestError:
            return ""


def _with_call(arguments: Any) -> list[dict[str, Any]]:
    function = {"name": "f", "arguments": arguments}
    call = {"id": "abcdefghi", "type": "function", "function": function}
    return [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "y", "name": "f", "tool_call_id": "abcdefghi"},
    ]
