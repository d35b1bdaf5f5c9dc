"""The interface of a tool-call format."""

from __future__ import annotations

import hashlib
import string
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..grammar.audit import SchemaProblems
from ..grammar.quoted import quoted
from ..shapes.tools import INPUT
from .lark import ANY, Lark, nested

_ALPHABET = string.ascii_letters + string.digits


def short(given: str) -> str:
    """Return an id of nine letters and digits that depends on another id."""
    if len(given) == 9 and given.isascii() and given.isalnum():
        return given
    digest = hashlib.blake2b(given.encode(errors="surrogatepass"), digest_size=32).digest()
    number = int.from_bytes(digest[:8], "big")
    return "".join(_ALPHABET[number // 62**i % 62] for i in range(9))


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request.

    Attributes:
        schemas: a tool's name -> JSON Schema of its arguments.
        held: whether a grammar enforces the format; calls in other forms, which models write by
            mistake, are then text.
    """

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    held: bool = False


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

    @property
    def example(self) -> str:
        """Return an example of a call with NAME, {ARGUMENTS}, KEY and VALUE.

        The example teaches the format to models whose template has no tools; "" if another format
        suits them better.
        """
        return ""

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
