"""The interface of a tool-call format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..audit import SchemaProblems
from ..quoted import quoted
from .lark import ANY, Lark, nested

INPUT = "input"  # the argument of the function that the model sees in place of a custom tool


@dataclass(frozen=True, slots=True)
class Rule:
    """A tool whose calls follow a schema.

    Attributes:
        name: the tool's name.
        schema: the enforceable JSON Schema of the arguments.
        text: the schema in the form that llguidance reads.
        open: whether the schema cannot be enforced and is not strict, so that any arguments are
            accepted.
        input: Lark grammar of the only argument, a text; None: the schema says all.
    """

    name: str
    schema: Mapping[str, Any]
    text: str
    open: bool = False
    input: str | None = None

    @property
    def arguments(self) -> str:
        """Return the expression of the arguments as a JSON object.

        Raises:
            SchemaProblems: the grammar of the input has no form inside of JSON.
        """
        if self.input is None:
            return f"%json {self.text}"
        head = rf'/\{{[ \n]{{0,4}}"{INPUT}":[ \n]{{0,4}}/'
        return f"{head} {self.quoted_input} /[ \\n]{{0,4}}\\}}/"

    @property
    def quoted_input(self) -> str:
        """Return the expression of the input as a JSON string; errors as in `arguments`."""
        assert self.input is not None
        try:
            return f'"\\"" {nested(quoted(self.input))} "\\""'
        except ValueError as e:
            raise SchemaProblems([f"not enforced: {e}"]) from e


class Format(ABC):
    """The interface of a format of tool calls: its texts and its grammar. app/tools reads it.

    A subclass may define these properties as attributes or fields; a field then needs a default.
    """

    @property
    def begins(self) -> tuple[str, ...]:
        """Return the texts that begin calls inside of free text."""
        return ()

    @property
    def markers(self) -> tuple[str, ...]:
        """Return the texts that may be special tokens and that the parser must see."""
        return ()

    @property
    def bare(self) -> bool:
        """Tell whether calls may also come at the very beginning, without any of `begins`."""
        return False

    @abstractmethod
    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call, or of several.

        Args:
            lark: the grammar to which rules are added.
            rules: the tools that may be called.
            lead: the expression of `begins[0]`, with which the first call begins.
            several: whether more calls may follow.

        Raises:
            SchemaProblems: a tool's schema cannot be enforced.
        """

    def forced(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of an output, after its reasoning, that consists of calls."""
        return self.grammar(lark, rules, lark.text(self.begins[0]), several=several)

    def free(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of an output, after its reasoning, of text and calls."""
        call = self.grammar(lark, rules, lark.up_to(self.begins[0]), several=False)
        text = lark.rule(ANY, lexeme=True)
        return f"({lark.rule(call)}){'*' if several else '?'} {text}"

    def answer(self, lark: Lark, body: str) -> str:
        """Return the expression of an output, after its reasoning, whose text is `body`."""
        return body


def free_or(lark: Lark, first: str, calls: str) -> str:
    """Return the expression of calls, or of a text that does not begin with `first`."""
    text = lark.rule(rf"/[^\s\{first}](.|\n)*/", lexeme=True)
    return lark.either([text, calls])
