"""Constrains an output to tool calls, to a schema, or to either; reasoning stays free."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wherry.errors import message_of

from ...errors import RequestError
from ..audit import MAX_TEXT, SchemaProblems, prepared
from ..constraint import Constraint
from ..fields import lark_of_input, slashed
from .families import Family
from .format import Rule
from .lark import Lark

_START = re.compile(r"^start(?=\s*(?:\[[^\]]*\])?\s*:)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool whose calls are constrained.

    Attributes:
        name: the tool's name.
        parameters: JSON Schema of its arguments.
        strict: whether the schema must be enforced.
        input: syntax and definition of the grammar of a custom tool's input; None: there is none.
    """

    name: str
    parameters: Mapping[str, Any] | None = None
    strict: bool | None = None
    input: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The two markers around reasoning."""

    begin: str
    end: str


class Enforcement:
    """Builds the constraint of one request.

    Args:
        family: the format of calls; None: the output has no calls.
        thoughts: markers of reasoning that may come first; None: the output has no reasoning.
        opened: whether the prompt has opened the reasoning.
        special: returns the id of a special token by name, or None.
    """

    def __init__(
        self,
        family: Family | None,
        thoughts: Thoughts | None,
        *,
        opened: bool,
        special: Callable[[str], int | None],
    ) -> None:
        self._family, self._thoughts, self._opened = family, thoughts, opened
        names = (*(family.format.markers if family else ()), *(family.stops if family else ()))
        if thoughts:
            names = (*names, thoughts.begin, thoughts.end)
        self._special, self._names = special, names

    def _new(self) -> Lark:
        return Lark(self._special, self._names)

    def calls(self, tools: Sequence[ToolSpec], *, several: bool) -> Constraint:
        """Return the constraint by which the output consists of calls of these tools.

        Raises:
            RequestError: a strict tool's parameters cannot be enforced.
        """
        lark, family = self._new(), self._known()
        body = family.format.forced(lark, self._rules(tools), several=several)
        return self._made(lark, body)

    def text_or_calls(self, tools: Sequence[ToolSpec], *, several: bool) -> Constraint:
        """Return the constraint of free text with calls that follow their tools' parameters.

        Errors as in `calls`.
        """
        lark, family = self._new(), self._known()
        return self._made(lark, family.format.free(lark, self._rules(tools), several=several))

    def held(
        self, base: Constraint, tools: Sequence[ToolSpec] = (), *, several: bool = True
    ) -> Constraint:
        """Return `base`, or calls of tools, as the constraint of the output after its reasoning."""
        plain = not tools and self._thoughts is None
        if plain and (self._family is None or not self._family.channels):
            return base
        lark = self._new()
        body, rules = _embedded(lark, base)
        if self._family is not None:
            body = self._family.format.answer(lark, body)
        if tools:
            calls = self._known().format.forced(lark, self._rules(tools), several=several)
            body = lark.either([body, calls])
        made = self._made(lark, body)
        return Constraint(made.kind, made.text + rules, base.param)

    def _known(self) -> Family:
        assert self._family is not None, "a request with tools has a family"
        return self._family

    def _made(self, lark: Lark, body: str) -> Constraint:
        text = lark.made(self._after_thoughts(lark, body))
        if len(text) > MAX_TEXT:
            raise RequestError(
                f"The tools have {len(text)} characters as a grammar; accepted are {MAX_TEXT}",
                param="tools",
                code="invalid_grammar",
            )
        return Constraint("lark", text, "tools")

    def _after_thoughts(self, lark: Lark, body: str) -> str:
        if self._thoughts is None:
            return body
        blanks = lark.rule(r"/[ \n]{0,4}/", lexeme=True)
        rest = f"{lark.up_to(self._thoughts.end)} {blanks}"
        if self._opened:
            return f"{rest} {body}"
        return f"({lark.text(self._thoughts.begin)} {rest})? {body}"

    def _rules(self, tools: Sequence[ToolSpec]) -> list[Rule]:
        rules, problems = [], []
        for i, tool in enumerate(tools):
            # A tool without parameters takes no arguments.
            schema = {"type": "object", "properties": {}, **(tool.parameters or {})}
            try:
                rule = Rule(tool.name, schema, prepared(schema), input=_input(tool, i))
                self._known().format.forced(self._new(), [rule], several=False)
                rules.append(rule)
            except SchemaProblems as e:
                if tool.strict or tool.input:
                    field = "custom.format" if tool.input else "function.parameters"
                    where = f"tools[{i}].{field}"
                    problems += [f"{where} ({tool.name!r}) {line}" for line in e.lines]
                anything = {"type": "object"}
                rules.append(Rule(tool.name, anything, prepared(anything), open=True))
        if problems:
            raise RequestError(message_of(problems), param="tools", code="unsupported_schema")
        return rules


def _input(tool: ToolSpec, index: int) -> str | None:
    if tool.input is None:
        return None
    syntax, definition = tool.input
    return lark_of_input(syntax, definition, f"tools[{index}].custom.format.grammar.definition")


def _embedded(lark: Lark, base: Constraint) -> tuple[str, str]:
    """Return a constraint as an expression of a Lark grammar, and its rules."""
    if base.kind == "json_schema":
        return f"%json {base.text}", ""
    if base.kind == "regex":
        return lark.rule(f"/{slashed(base.text)}/", lexeme=True), ""
    return "wherry_base", "\n" + _START.sub("wherry_base", base.text)
