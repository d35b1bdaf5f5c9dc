"""Mistral's two formats: `[TOOL_CALLS] [{call}, ...]`, since 2025 `[TOOL_CALLS]name[ARGS]{...}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule
from ..lark import Lark
from .headed import Headed
from .tagged import Tagged

_LIST = Tagged(("[TOOL_CALLS]",), listed=True)
_NAMED = Headed("[TOOL_CALLS]", ("[ARGS]", ""), tag="[CALL_ID]")


@dataclass(frozen=True)
class Mistral(Format):
    """Mistral's formats; grammars enforce the newer one if it is `named`."""

    named: bool = False
    begins = ("[TOOL_CALLS]",)
    markers = ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]")

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        return (_NAMED if self.named else _LIST).grammar(lark, rules, lead, several=several)
