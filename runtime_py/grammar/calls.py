"""The grammar of a chat's output: tool calls, a constraint, or either, after free reasoning.

C++ writes it in llguidance's dialect of Lark (app/host/calls_grammar.h). Here are the schemas and
the grammars of custom tools' inputs, to which its rules refer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from wherry.data import read
from wherry.errors import UsageError, message_of

from ..core.host_abi import answer_to
from ..errors import RequestError
from .audit import MAX_TEXT, SchemaProblems, prepared
from .constraint import Constraint
from .fields import lark_of_input, slashed
from .quoted import quoted

_START = re.compile(r"^start(?=\s*(?:\[[^\]]*\])?\s*:)", re.MULTILINE)


def check_tool_format(name: str) -> None:
    """Check the name of a tool format.

    Raises:
        UsageError: no row of app/data/tool_families.json has this name.
    """
    names = dict.fromkeys(row["name"] for row in read("tool_families"))
    if name not in names:
        raise UsageError(f"tool_format is {name!r}; it takes one of {', '.join(names)}")


def constraint_of_chat(chat: Mapping[str, Any], base: Constraint | None) -> Constraint:
    """Return the constraint of a chat's output.

    Args:
        chat: how the output begins and which tools it may call, as C++ describes it.
        base: the constraint of the request's fields.

    Raises:
        RequestError: a schema or a grammar cannot be enforced.
    """
    parts = _Parts(chat["tools"])
    free: set[int] = set()  # tools that are not strict, and take any arguments
    while True:
        request = {**chat, "based": base is not None, "open": sorted(free)}
        grammar = answer_to("wherry_calls_grammar", json.dumps(request))
        assert grammar is not None, "C++ has described the chat"
        parts.define(grammar["parts"])
        unenforced = dict(parts.unenforced(grammar["tools"]))
        _check_strict(chat["tools"], unenforced)
        if unenforced.keys() <= free:
            break
        free |= unenforced.keys()
    if not grammar["text"]:
        assert base is not None, "a chat without tools has a constraint of its fields"
        return base
    text = grammar["text"] + "".join(f"wherry_part{i}: {parts.texts[i]}\n" for i in grammar["used"])
    if len(text) > MAX_TEXT:
        raise RequestError(
            f"The tools have {len(text)} characters as a grammar; accepted are {MAX_TEXT}",
            param="tools",
            code="invalid_grammar",
        )
    if base is None or chat["must"]:
        return Constraint("lark", text, "tools")
    return Constraint("lark", text + _base_rules(base), base.param)


class _Parts:
    """The parts of a chat's grammar: rules that stand for schemas and inputs.

    Args:
        tools: those of the chat.

    Attributes:
        texts: the expression of each part that can be enforced.
    """

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        self._tools = tools
        self._known: dict[tuple[str, str], str | list[str]] = {}
        self.texts: dict[int, str] = {}
        self._problems: dict[int, list[str]] = {}

    def define(self, parts: list[tuple[str, str]]) -> None:
        """Write each part, or note what cannot be enforced of it."""
        self.texts, self._problems = {}, {}
        for i, (kind, text) in enumerate(parts):
            if (kind, text) not in self._known:
                self._known[kind, text] = self._written(kind, text)
            result = self._known[kind, text]
            if isinstance(result, str):
                self.texts[i] = result
            else:
                self._problems[i] = result

    def unenforced(self, tools: list[dict[str, Any]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the tools that cannot be enforced, with a line for each reason."""
        for tool in tools:
            lines = self._problems.get(tool["schema"]) or tool["problems"]
            lines = lines or [line for i in tool["parts"] for line in self._problems.get(i, ())]
            if lines:
                yield tool["tool"], lines

    def _written(self, kind: str, text: str) -> str | list[str]:
        try:
            if kind == "schema":
                return f"%json {prepared(json.loads(text))}"
            return self._input(int(text), in_json=kind == "input_in_json")
        except SchemaProblems as e:
            return e.lines

    def _input(self, tool: int, *, in_json: bool) -> str:
        syntax, definition = self._tools[tool]["input"]
        where = f"tools[{tool}].custom.format.grammar.definition"
        grammar = lark_of_input(syntax, definition, where)
        try:
            grammar = quoted(grammar) if in_json else grammar
        except ValueError as e:
            raise SchemaProblems([f"not enforced: {e}"]) from e
        return f"%lark {{\n{grammar}\n}}"


def _check_strict(tools: list[dict[str, Any]], unenforced: Mapping[int, list[str]]) -> None:
    problems = []
    for i, lines in unenforced.items():
        tool = tools[i]
        if tool["strict"] or tool["input"]:
            field = "custom.format" if tool["input"] else "function.parameters"
            problems += [f"tools[{i}].{field} ({tool['name']!r}) {line}" for line in lines]
    if problems:
        raise RequestError(message_of(problems), param="tools", code="unsupported_schema")


def _base_rules(base: Constraint) -> str:
    """Return the rules of a constraint, of which the first is named wherry_base."""
    if base.kind == "json_schema":
        return f"wherry_base: %json {base.text}\n"
    if base.kind == "regex":
        return f"wherry_base: WHERRY_BASE\nWHERRY_BASE: /{slashed(base.text)}/\n"
    return _START.sub("wherry_base", base.text)
