"""Gemma's calls: `call:name{key:value,...}`, with markers around strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule
from ..lark import Lark
from ..markup_rules import element, members


@dataclass(frozen=True)
class Braces(Format):
    """The format of Gemma's calls: `begin` call:name{key:value,...} `end`.

    Strings stand between two `quote`.
    """

    begin: str
    end: str
    quote: str

    @property
    def begins(self) -> tuple[str, ...]:
        """Return the texts that begin calls inside of free text; implements `Format.begins`."""
        return (self.begin,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Return texts that may be special tokens for the parser; implements `Format.markers`."""
        return (self.begin, self.end, self.quote)

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        calls = [
            f"{lark.text('call:' + rule.name + '{')} {self._members(lark, rule)} "
            f"{lark.text('}' + self.end)}"
            for rule in rules
        ]
        call = lark.either(calls)
        more = f" ({lark.text(self.begin)} {call})*" if several else ""
        return f"{lead} {call}{more}"

    def _members(self, lark: Lark, rule: Rule) -> str:
        """Return the members' expression; they are sorted by name, as in the template."""
        if rule.open:
            one = f'/[A-Za-z_][A-Za-z0-9_]*/ ":" {lark.json({}, {})}'
            return f'({one} ("," {one})*)?'
        required = rule.schema.get("required", ())
        properties = members(rule.schema)
        first = sorted(key for key in properties if key in required)
        later = sorted(key for key in properties if key not in required)
        made = ""
        for i, key in enumerate((*first, *later)):
            head = lark.text(("," if i else "") + key + ":")
            one = f"{head} {self._value(lark, properties[key], rule)}"
            made += f" {one}" if key in required else f" ({one}"
        return made + ")?" * len(later)

    def _value(self, lark: Lark, schema: object, rule: Rule) -> str:
        """Return the expression of a value: numbers, constants, marked strings; otherwise JSON."""
        kind = schema.get("type") if isinstance(schema, dict) else None
        values = schema.get("enum") if isinstance(schema, dict) else None
        if kind == "string" or (values and all(isinstance(v, str) for v in values)):
            _, inner = element(lark, schema, rule, self.quote)
            return f"{lark.text(self.quote)} {inner}"
        return lark.json(schema, rule.schema)
