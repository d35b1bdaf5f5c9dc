"""Calls in angle brackets, with an element for each argument.

Qwen3-Coder, GLM, MiniMax and DeepSeek V3.2 write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule
from ..lark import Lark
from ..markup_rules import element, members


@dataclass(frozen=True)
class Markup(Format):
    """Calls in markup, whose texts are the attributes.

    The syntax is: `outer` (`call` name `named` (`key` key `keyed` value `ended`)* `call_end`)+
    `outer_end`.

    Attributes:
        outer: text before all calls.
        outer_end: text after all calls.
        call, named, call_end: texts around one call's name and after it; "" if the outer element
        has the name.
        key, keyed: texts before and after an argument's name; white space may follow `keyed`.
        ended: the text after a value.
        several: whether an outer element may have several calls.
        pad: white space around a value that does not belong to it.
        line: white space after `outer`, `named` and `ended`.
        typed: an attribute of `keyed` that says whether the value is a string.
    """

    outer: str
    outer_end: str
    call: str = "<function="
    named: str = ">"
    call_end: str = "</function>"
    key: str = "<parameter="
    keyed: tuple[str, ...] = (">",)
    ended: str = "</parameter>"
    several: bool = False
    pad: str = ""
    line: str = "\n"
    typed: bool = False

    @property
    def begins(self) -> tuple[str, ...]:
        """Return the texts that begin calls; models sometimes forget the outer element.

        Implements `Format.begins`.
        """
        return (self.outer, self.call) if self.call else (self.outer,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Return texts that may be special tokens for the parser; implements `Format.markers`."""
        all_of = (self.outer, self.outer_end, self.call, self.call_end, self.key, self.ended)
        return tuple(t for t in (*all_of, *self.keyed) if t and t != ">")

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        calls = []
        for rule in rules:
            arguments = self._elements(lark, rule)
            head = lark.text(self.call + rule.name + (self.named if self.call else "") + self.line)
            calls.append(f"{head} {arguments} {lark.text(self.call_end)}")
        call = lark.either(calls)
        line = lark.text(self.line) if self.call else ""
        if self.several:
            more = f" ({lark.text(self.line)} {call})*" if several else ""
            return f"{lead} {line} {call}{more} {line} {lark.text(self.outer_end)}"
        rest = lark.rule(f"{line} {call} {line} {lark.text(self.outer_end)}")
        more = f" ({lark.text(self.line + self.outer)} {rest})*" if several else ""
        return f"{lead} {rest}{more}"

    def _elements(self, lark: Lark, rule: Rule) -> str:
        if rule.open:
            head = f'{lark.text(self.key)} /[^<>"=\\s]+/ {lark.text(self.line.join(self.keyed))}'
            return f"({head} {lark.up_to(self.ended)} {lark.text(self.line)})*"
        required = rule.schema.get("required", ())
        made = []
        for key, schema in members(rule.schema).items():
            is_text, inner = element(lark, schema, rule, self.pad + self.ended)
            attribute = f'" string="{str(is_text).lower()}"' if self.typed else ""
            head = lark.text(self.key + key + attribute + self.line.join(self.keyed) + self.pad)
            one = f"{head} {inner} {lark.text(self.line)}"
            made.append(one if key in required else f"({one})?")
        return " ".join(made)
