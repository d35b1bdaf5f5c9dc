"""Calls in Python's syntax, as Llama 3.2 and 4, Gemma 3, LFM2 and Olmo 3 write them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..format import Format, Rule, Tools, free_or
from ..lark import Lark
from ..markup_rules import members
from ..output import Output
from ..python_text import value
from ..scanner import Scanner, Steps

_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_KEY = re.compile(r"[A-Za-z_]\w*")


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

    @property
    def example(self) -> str:
        """Return an example of a call for prompts; implements `Format.example`."""
        call = "[NAME(KEY=VALUE)]" if self.brackets else "NAME(KEY=VALUE)"
        return f"{''.join(self.begins[:1])}{call}{self.end}"

    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """Read the calls after `begin`; return whether any came. Implements `Format.calls`."""
        listed = (yield from s.space()) == "["
        if not begin and not listed:
            return False
        s.at += listed
        known = None if begin else tools.schemas
        if not (yield from self._call(s, out, known)):
            return False
        while not out.full:
            if (yield from s.space()) == ",":
                s.at += 1
                yield from s.space()
            if not (yield from s.attempt(self._call(s, out, known))):
                break
        if listed and (yield from s.space()) == "]":
            s.at += 1
        if begin and self.end:
            yield from s.space()
            yield from s.accept(self.end.lstrip())
        return True

    def _call(self, s: Scanner, out: Output, known: Collection[str] | None) -> Steps[bool]:
        yield from s.space()
        name = yield from s.match(_NAME)
        if not name or (known is not None and name not in known):
            return False
        if not (yield from s.accept("(")):
            return False
        s.release()
        out.begin(name)
        out.arguments("{")
        whole = yield from self._arguments(s, out)
        out.end(whole=whole)
        return True

    def _arguments(self, s: Scanner, out: Output) -> Steps[bool]:
        first = True
        while True:
            char = yield from s.space()
            if char == "," and not first:
                s.at += 1
                char = yield from s.space()
            if char == ")":
                s.at += 1
                out.arguments("}")
                return True
            key = yield from s.match(_KEY)
            if not key or (yield from s.space()) != "=":
                if key:
                    out.arguments(f"{'' if first else ', '}{json.dumps(key)}")
                return False
            s.at += 1
            out.arguments(f"{'' if first else ', '}{json.dumps(key)}: ")
            first = False
            if not (yield from value(s, out.arguments, argument=True)):
                return False

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
    if isinstance(schema, dict) and schema.get("type") == "boolean":
        return '("True" | "False")'
    return lark.json(schema, rule.schema)
