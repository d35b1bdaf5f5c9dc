"""Reads a model's tool-call format and reasoning markers from its chat template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..caller import Caller
from ..errors import RequestError
from ..text.chat_template import ChatTemplate
from .families import GENERIC, Family, family_of, family_of_tokens, named
from .history import Adapted, History
from .reasoning import Thoughts, thoughts_of

# names of template variables that contain tools
_FUNCTIONS = "functions"
_TOOL_VARIABLES = ("tools", "xml_tools", _FUNCTIONS)
THINKING_VARIABLES = ("enable_thinking", "thinking")
_NEEDLE = "needle7"


class Dialect:
    """The way in which one chat template takes tools and messages.

    Args:
        template: the model's chat template.
        tool_format: name of the family; None: the template determines it.
        known: tells whether a name is a token. If a template prints tools without an example of a
            call, the special tokens tell the family.
        adapts: whether conversations are adapted to the template.

    Attributes:
        family: the format of calls.
        thoughts: the markers of reasoning; None: the model has none.
        native: whether the template describes tools; otherwise the conversation must.

    Raises:
        UsageError: there is no family of this name.
    """

    def __init__(
        self,
        template: ChatTemplate,
        tool_format: str | None = None,
        known: Callable[[str], bool] = lambda name: False,
        *,
        adapts: bool = True,
    ) -> None:
        self._template = template
        self._adapts = adapts
        self._for_tools: Dialect | None = None
        if template.for_tools is not None:
            self._for_tools = Dialect(template.for_tools, tool_format, known, adapts=adapts)
        self.native = bool(self._tool_variables)
        self.family: Family = named(tool_format) if tool_format else self._found(known)
        self.thoughts: Thoughts | None = thoughts_of(template.source)

    def suited(self, *, tools: bool) -> Dialect:
        """Return the dialect of the model's template for chats with or without tools."""
        return self._for_tools if tools and self._for_tools else self

    def _found(self, known: Callable[[str], bool]) -> Family:
        """Return the family that the model was trained on, or one that a prompt can teach it."""
        found = family_of(self._template.source)
        if self.native:
            return family_of_tokens(known) if found is GENERIC else found
        return found if found.format.example else GENERIC

    @cached_property
    def _tool_variables(self) -> list[str]:
        return [name for name in _TOOL_VARIABLES if name in self._template.variables]

    def tool_variables(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the template variables that contain tools."""
        made: dict[str, Any] = {name: list(tools) for name in self._tool_variables if tools}
        if self._functions_as_text:
            functions = [tool.get("function", tool) for tool in tools]
            made[_FUNCTIONS] = json.dumps(functions, indent=4, ensure_ascii=False)
        return made

    @cached_property
    def _functions_as_text(self) -> bool:
        """Tell whether the template joins functions to a text, with or without tools.

        Firefunction's does, and its model was trained on JSON in this layout.
        """

        def takes(functions: Any) -> bool:
            user = {"role": "user", "content": "x"}
            try:
                return bool(self._template.render([user], variables={_FUNCTIONS: functions}))
            except RequestError:
                return False

        return _FUNCTIONS in self._template.variables and not takes([]) and takes("[]")

    def knows(self, variable: str) -> bool:
        """Tell whether the template reads a variable."""
        return variable in self._template.variables

    def rendered(
        self, messages: Sequence[Mapping[str, Any]], caller: Caller, **variables: Any
    ) -> tuple[str, tuple[str, ...]]:
        """Return the prompt of messages, and the names of the steps that adapted these before.

        Args:
            messages: messages for the template.
            caller: the client that waits for the prompt.
            variables: variables of the template, with `add_generation_prompt`.

        Raises:
            RequestError: the template refuses the messages, adapted or not.
            Abandoned: the client has gone.
        """

        def render(some: Adapted) -> tuple[str, tuple[str, ...]]:
            text = self._template.render(some.messages, variables=variables, caller=caller)
            return text, some.changes

        if self._history is None:
            return render(Adapted([dict(m) for m in messages]))
        adapted = self._history.adapted(messages)
        try:
            return render(adapted)
        except RequestError:
            if (again := self._history.retried(adapted, variables)) is None:
                raise
            return render(again)

    @cached_property
    def _history(self) -> History | None:
        return History(self._template, self.family.name) if self._adapts else None

    @cached_property
    def takes_text(self) -> bool:
        """Tell whether the template needs earlier arguments as JSON texts instead of objects.

        Templates do not say this, so both are tried: a template that joins texts fails for an
        object, and a template that prints an object writes Python's quotes.
        """
        arguments = {_NEEDLE: "x"}
        as_object = self._tried(_with_call(arguments))
        if _NEEDLE in as_object and f"{{'{_NEEDLE}'" not in as_object:
            return False
        return _NEEDLE in self._tried(_with_call(json.dumps(arguments)))

    @cached_property
    def takes_calls(self) -> bool:
        """Tell whether the template prints earlier calls; otherwise they become texts."""
        return self.native or _NEEDLE in self._tried(_with_call({_NEEDLE: "x"})) or self.takes_text

    @cached_property
    def takes_system(self) -> bool:
        """Tell whether the template accepts system messages."""
        system = {"role": "system", "content": _NEEDLE}
        return _NEEDLE in self._tried([system, {"role": "user", "content": "x"}])

    def _tried(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the rendered messages; "" if the template refuses them."""
        try:
            variables = self.tool_variables([])
            return self._template.render(messages, add_generation_prompt=False, variables=variables)
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
