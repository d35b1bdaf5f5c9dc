"""The interface of a tool-call format."""

from __future__ import annotations

import hashlib
import secrets
import string
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .lark import ANY, Lark
from .output import Output
from .scanner import Scanner, Steps

_ALPHABET = string.ascii_letters + string.digits


def call_id() -> str:
    """Return a new id of a call in OpenAI's form."""
    return f"call_{secrets.token_hex(12)}"


def short_id() -> str:
    """Return a new id of nine letters and digits, which Mistral's templates require."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(9))


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

    def declares(self, name: str, argument: str) -> bool:
        """Tell whether a tool may have an argument of this name; an unknown tool may."""
        properties = self.schemas.get(name, {}).get("properties")
        return not isinstance(properties, Mapping) or argument in properties

    def kinds(self, name: str, argument: str) -> Sequence[str]:
        """Return the JSON types that an argument may have; empty if unknown."""
        properties = self.schemas.get(name, {}).get("properties")
        schema = properties.get(argument) if isinstance(properties, Mapping) else None
        if not isinstance(schema, Mapping):
            return ()
        found = schema.get("type")
        if isinstance(found, str):
            return (found,)
        if isinstance(found, Sequence):
            return tuple(map(str, found))
        kinds: list[str] = []
        for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            inner = branch.get("type") if isinstance(branch, Mapping) else None
            kinds += [inner] if isinstance(inner, str) else []
        values = schema.get("enum", ())
        if not kinds and values and all(isinstance(v, str) for v in values):
            return ("string",)
        return kinds


@dataclass(frozen=True, slots=True)
class Rule:
    """A tool whose calls follow a schema.

    Attributes:
        name: the tool's name.
        schema: the enforceable JSON Schema of the arguments.
        text: the schema in the form that llguidance reads.
        open: whether the schema cannot be enforced and is not strict, so that any arguments are
            accepted.
    """

    name: str
    schema: Mapping[str, Any]
    text: str
    open: bool = False


class Format(ABC):
    """The interface of a format of tool calls: its parser and its grammar.

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
    def silent(self) -> tuple[str, ...]:
        """Return the texts that are dropped wherever they occur."""
        return ()

    @property
    def amid(self) -> tuple[str, ...]:
        """Return patterns of calls inside of free text that begin without any of `begins`.

        A match counts only if it names a tool of the request.
        """
        return ()

    @property
    def example(self) -> str:
        """Return an example of a call with NAME, {ARGUMENTS}, KEY and VALUE.

        The example teaches the format to models whose template has no tools; "" if another format
        suits them better.
        """
        return ""

    @abstractmethod
    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """Read calls after `begin`, which has been read; return whether any were found.

        The reader must decide that this is a call before `out.begin`, and then call `s.release()`.
        """

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

    def read(self, s: Scanner, out: Output, tools: Tools) -> Steps[None]:
        """Read a whole output after its reasoning, and pass its parts to `out`."""
        if self.bare:
            yield from s.attempt(self.calls(s, out, tools, ""))
        amid = () if tools.held else self.amid
        while True:
            found = yield from s.until((*self.begins, *self.silent, *amid), out.text)
            if not found:
                return
            if found in self.silent:
                continue
            begin = "" if found in amid else found
            if not begin:
                s.at -= len(found)
            if out.full or not (yield from s.attempt(self.calls(s, out, tools, begin))):
                out.text(found)
                s.at += 0 if begin else len(found)


def free_or(lark: Lark, first: str, calls: str) -> str:
    """Return the expression of calls, or of a text that does not begin with `first`."""
    text = lark.rule(rf"/[^\s\{first}](.|\n)*/", lexeme=True)
    return lark.either([text, calls])
