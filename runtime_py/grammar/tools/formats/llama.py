"""Calls of Llama 3.1 to 3.3: {"name": ..., "parameters": ...}, alone or after <|python_tag|>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule, free_or
from ..lark import Lark
from .tagged import Tagged


@dataclass(frozen=True)
class Bare(Format):
    """Calls that are JSON objects, or lists of them, at the beginning or after a marker.

    Objects at the beginning are calls only if they name a tool of the request.

    Attributes:
        begins: markers that may precede calls.
        fences: texts that may surround calls without a marker.
        head: the constant text before the tool's name.
        middle: the constant text between name and arguments.
    """

    begins: tuple[str, ...] = ()
    fences: tuple[tuple[str, str], ...] = ()
    head: str = '{"name": "'
    middle: str = '", "parameters": '
    bare = True

    @property
    def markers(self) -> tuple[str, ...]:
        """Return texts that may be special tokens for the parser; implements `Format.markers`."""
        return self.begins

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call or several; implements `Format.grammar`."""
        written = Tagged(("",), head=self.head, middle=self.middle)
        call = lark.either([written.call(lark, rule) for rule in rules])
        return f'{lead} {call} ("; " {call})*' if several else f"{lead} {call}"

    def forced(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of an output that consists of calls; implements `Format.forced`."""
        return self.grammar(lark, rules, "", several=several)

    def free(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of calls, or of text that does not begin with a brace.

        Implements `Format.free`.
        """
        return free_or(lark, "{", self.grammar(lark, rules, "", several=several))
