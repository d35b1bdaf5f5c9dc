"""Calls in Python's syntax, as Llama 3.2 and 4, Gemma 3, LFM2 and Olmo 3 write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule, free_or
from ..lark import Lark
from ..markup_rules import members


@dataclass(frozen=True)
class Pythonic(Format):
    """Calls `begin` `[`? name(key=value, ...) (`,` or a line break) ... `]`? `end`.

    Attributes:
        begins: texts that begin calls; empty: calls are at the beginning, in brackets.
        end: the text after the calls, or "".
        brackets: whether several calls are written as a list.
    """

    begins: tuple[str, ...] = ()
    end: str = ""
    brackets: bool = True

    @property
    def bare(self) -> bool:
        """Tell whether calls may come without a marker.

        Only calls of the request's tools count there.

        Implements `Format.bare`.
        """
        return self.brackets

    @property
    def markers(self) -> tuple[str, ...]:
        """Return texts that may be special tokens for the parser; implements `Format.markers`."""
        return (*self.begins, *((self.end,) if self.end else ()))

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        call = lark.either([self._rule(lark, rule) for rule in rules])
        comma = '", "' if self.brackets else '"\\n"'
        more = f" ({comma} {call})*" if several else ""
        inner = f'"[" {call}{more} "]"' if self.brackets else f"{call}{more}"
        return f"{lead} {inner} {lark.text(self.end)}"

    def forced(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of an output that consists of calls; implements `Format.forced`."""
        lead = lark.text(self.begins[0]) if self.begins else ""
        return self.grammar(lark, rules, lead, several=several)

    def free(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of text and calls.

        Text without a marker must not begin with a bracket.

        Implements `Format.free`.
        """
        if self.begins:
            return super().free(lark, rules, several=several)
        return free_or(lark, "[", self.grammar(lark, rules, "", several=several))

    def _rule(self, lark: Lark, rule: Rule) -> str:
        if rule.open:
            one = f'/[A-Za-z_][A-Za-z0-9_]*/ "=" {lark.json({}, {})}'
            return f'{lark.text(rule.name + "(")} ({one} (", " {one})*)? {lark.text(")")}'
        required = rule.schema.get("required", ())
        properties = members(rule.schema)
        ordered = sorted(properties, key=lambda key: key not in required)
        made = ""
        for i, key in enumerate(ordered):
            head = lark.text((", " if i else "") + key + "=")
            one = f"{head} {_literal(lark, properties[key], rule)}"
            made += f" {one}" if key in required else f" ({one}"
        made += ")?" * sum(key not in required for key in ordered)
        return f"{lark.text(rule.name + '(')}{made} {lark.text(')')}"


def _literal(lark: Lark, schema: object, rule: Rule) -> str:
    """Return the expression of a value that JSON and Python share; constants are Python's."""
    if rule.input is not None:
        return rule.quoted_input
    if isinstance(schema, dict) and schema.get("type") == "boolean":
        return '("True" | "False")'
    return lark.json(schema, rule.schema)
