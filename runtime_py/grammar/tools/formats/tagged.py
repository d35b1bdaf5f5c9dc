"""Calls that are JSON objects, or lists of them, after a marker.

Hermes, Qwen, Granite, Phi, Cohere and Nemotron write them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule
from ..lark import Lark


@dataclass(frozen=True)
class Tagged(Format):
    """Calls `begin` {call} `end`, or `begin` [{call}, ...] `end`.

    Attributes:
        begins: texts that begin calls; the first is the usual one.
        end: the text after the object or list, or "".
        listed: whether several calls are one list; otherwise each has its own marker.
        head: the constant text before the tool's name.
        middle: the constant text between the name and the arguments, which "}" follows.
        space: the text between the marker and the object.
        between: the text between two calls that are no list.
        silent: texts that are dropped wherever they occur.
    """

    begins: tuple[str, ...] = ()
    end: str = ""
    listed: bool = False
    head: str = '{"name": "'
    middle: str = '", "arguments": '
    space: str = ""
    between: str = "\n"
    silent: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """Return texts that may be special tokens for the parser; implements `Format.markers`."""
        return (*self.begins, *((self.end,) if self.end else ()), *self.silent)

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        call = lark.either([self.call(lark, rule) for rule in rules])
        end = lark.text(self.space + self.end)
        if self.listed:
            more = f' (", " {call})*' if several else ""
            return f'{lead} {lark.text(self.space)} "[" {call}{more} "]" {end}'
        rest = lark.rule(f"{lark.text(self.space)} {call} {end}")
        more = f" ({lark.text(self.between + self.begins[0])} {rest})*" if several else ""
        return f"{lead} {rest}{more}"

    def call(self, lark: Lark, rule: Rule) -> str:
        """Return the expression of one call's object."""
        head = lark.text(self.head + json.dumps(rule.name)[1:-1] + self.middle)
        return f'{head} {rule.arguments} "}}"'
