"""Mistral's two formats: `[TOOL_CALLS] [{call}, ...]`, since 2025 `[TOOL_CALLS]name[ARGS]{...}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..call_object import CallObject
from ..format import Format, Rule, Tools
from ..lark import Lark
from ..output import Output
from ..scanner import Scanner, Steps
from .headed import Headed
from .tagged import Tagged

_LIST = Tagged(("[TOOL_CALLS]",), listed=True, form=CallObject(ids=True))
_NAMED = Headed("[TOOL_CALLS]", ("[ARGS]", ""), tag="[CALL_ID]")


@dataclass(frozen=True)
class Mistral(Format):
    """Reads both of Mistral's formats; grammars enforce the newer one, `named`."""

    named: bool = False
    begins = ("[TOOL_CALLS]",)
    markers = ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]")

    @property
    def example(self) -> str:
        """Return an example of a call for prompts; implements `Format.example`."""
        return (_NAMED if self.named else _LIST).example

    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """Read the calls after `begin`; return whether any came. Implements `Format.calls`."""
        kind = _LIST if (yield from s.space()) in "[{" else _NAMED
        return (yield from kind.calls(s, out, tools, begin))

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        return (_NAMED if self.named else _LIST).grammar(lark, rules, lead, several=several)
