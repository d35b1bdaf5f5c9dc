"""The format with a header that names the tool, and JSON: DeepSeek, Kimi, Mistral, Functionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule
from ..lark import Lark


@dataclass(frozen=True)
class Headed(Format):
    """Calls `section`? (`begin` `before`? name `middle` arguments `end`)+ `section_end`?

    Attributes:
        begin: the marker of one call.
        middle: possible texts between name and arguments; the first is the usual one.
        before: a text that may stand before the name.
        tag: the text between the name and an id or number of the call, if there is one.
        whole_id: whether the call's id is the whole header, or only the part after the tag.
        end: texts that end a call; the first is the usual one.
        section: text before all calls; "" if there is none.
        section_end: text after all calls; "" if there is none.
        between: the text between two calls.
    """

    begin: str
    middle: tuple[str, ...]
    before: str = ""
    tag: str = ""
    whole_id: bool = False
    end: tuple[str, ...] = ()
    section: str = ""
    section_end: str = ""
    between: str = ""

    @property
    def begins(self) -> tuple[str, ...]:
        """Return the texts that begin calls inside of free text; implements `Format.begins`."""
        return (self.section, self.begin) if self.section else (self.begin,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Return texts that may be special tokens for the parser; implements `Format.markers`."""
        texts = (*self.begins, self.before, self.tag, *self.middle, *self.end, self.section_end)
        return tuple(t for t in texts if t)

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        number = f"{lark.text(self.tag)} /[0-9]{{1,4}}/ " if self.tag and self.whole_id else ""
        calls = [
            f"{lark.text(self.before + rule.name)} {number}"
            f"{lark.text(self.middle[0])} {rule.arguments} "
            f"{lark.text(self.end[0]) if self.end else ''}"
            for rule in rules
        ]
        call = lark.either(calls)
        more = f" ({lark.text(self.between + self.begin)} {call})*" if several else ""
        begin = lark.text(self.begin) if self.section else ""
        return f"{lead} {begin} {call}{more} {lark.text(self.section_end)}"
