"""JSON objects, or lists of them, after a marker: Hermes, Qwen, Granite, Phi, Cohere, Nemotron."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..call_object import CallObject
from ..format import Format, Rule, Tools
from ..lark import Lark
from ..output import Output
from ..scanner import Scanner, Steps

_LEFT_OVER = re.compile(r"[\s}\]]*")  # superfluous brackets


@dataclass(frozen=True)
class Tagged(Format):
    """`begin` {call} `end`, or `begin` [{call}, ...] `end`.

    Attributes:
        begins: see Format; the first is the usual one.
        end: the text after it, or "".
        listed: whether several calls are one list; otherwise each has its own marker.
        form: the object.
        head, middle: the constant parts: head, the name, middle, its arguments, "}".
        space: the text between marker and object.
        between: the text between two calls that are no list.
        silent: see Format.
    """

    begins: tuple[str, ...] = ()
    end: str = ""
    listed: bool = False
    form: CallObject = CallObject()  # noqa: RUF009 - frozen
    head: str = '{"name": "'
    middle: str = '", "arguments": '
    space: str = ""
    between: str = "\n"
    silent: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """See Format."""
        return (*self.begins, *((self.end,) if self.end else ()), *self.silent)

    @property
    def example(self) -> str:
        """See Format."""
        call = f"{self.head}NAME{self.middle}{{ARGUMENTS}}}}"
        call = f"[{call}]" if self.listed else call
        return f"{self.begins[0]}{self.space}{call}{self.space}{self.end}"

    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """See Format."""
        form = replace(self.form, end=self.end)
        if not (yield from form.list(s, out, None)):
            return False
        yield from s.match(_LEFT_OVER)
        if self.end:
            yield from s.accept(self.end)
        return True

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """See Format."""
        call = lark.either([self.call(lark, rule) for rule in rules])
        end = lark.text(self.space + self.end)
        if self.listed:
            more = f' (", " {call})*' if several else ""
            return f'{lead} {lark.text(self.space)} "[" {call}{more} "]" {end}'
        rest = lark.rule(f"{lark.text(self.space)} {call} {end}")
        more = f" ({lark.text(self.between + self.begins[0])} {rest})*" if several else ""
        return f"{lead} {rest}{more}"

    def call(self, lark: Lark, rule: Rule) -> str:
        """The expression of one call's object."""
        head = lark.text(self.head + json.dumps(rule.name)[1:-1] + self.middle)
        return f'{head} %json {rule.text} "}}"'
