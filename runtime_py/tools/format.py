"""What a family of models writes when it calls tools."""

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
    """An id as OpenAI's look."""
    return f"call_{secrets.token_hex(12)}"


def short_id() -> str:
    """Nine letters and digits, which Mistral's templates insist on."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(9))


def short(given: str) -> str:
    """An id of nine letters and digits for one that may be of another form."""
    if len(given) == 9 and given.isascii() and given.isalnum():
        return given
    digest = hashlib.blake2b(given.encode(errors="surrogatepass"), digest_size=32).digest()
    number = int.from_bytes(digest[:8], "big")
    return "".join(_ALPHABET[number // 62**i % 62] for i in range(9))


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request.

    Attributes:
        schemas: name -> JSON Schema of the arguments.
        held: a grammar holds the output to calls as the format writes them, so that others, which
            models write where they forget the format, are text.
    """

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    held: bool = False

    def declares(self, name: str, argument: str) -> bool:
        """Whether a tool may have an argument of this name: one of which nothing is known may."""
        properties = self.schemas.get(name, {}).get("properties")
        return not isinstance(properties, Mapping) or argument in properties

    def kinds(self, name: str, argument: str) -> Sequence[str]:
        """The types that an argument may have; none if that is not said."""
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
    """A tool whose calls are held to a schema.

    Attributes:
        name: the tool's.
        schema: JSON Schema of its arguments, which can be enforced as a whole.
        text: the same as the grammars' library takes it.
        open: the schema could not be enforced, and was not asked to be: any arguments will do.
    """

    name: str
    schema: Mapping[str, Any]
    text: str
    open: bool = False


class Format(ABC):
    """How calls are written: reading them, and holding a model to them.

    A format may also have what are properties here as attributes or fields of its own; a field
    then needs a default.
    """

    @property
    def begins(self) -> tuple[str, ...]:
        """Texts that begin calls amid free text."""
        return ()

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that may be special tokens, which readers have to see."""
        return ()

    @property
    def bare(self) -> bool:
        """Whether calls may also stand at the very beginning without any of `begins`."""
        return False

    @property
    def silent(self) -> tuple[str, ...]:
        """Texts that are left out wherever they stand."""
        return ()

    @property
    def amid(self) -> tuple[str, ...]:
        """How calls begin that stand amid free text without any of `begins`.

        They count if they name a tool of the request.
        """
        return ()

    @property
    def example(self) -> str:
        """How a call is written, with NAME, {ARGUMENTS}, KEY and VALUE in it.

        It is for models that are told of tools in words alone; "" if they are better told of
        another format.
        """
        return ""

    @abstractmethod
    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """Take calls after `begin`, which is taken; whether there are any.

        What is not a call must be found out before `out.begin`, and `s.release()` come with it.
        """

    @abstractmethod
    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """The expression of one call, or of one or several.

        Args:
            lark: the grammar.
            rules: the tools that may be called.
            lead: the expression that stands for the first of `begins`, which begins the first call.
            several: whether more calls may follow.

        Raises:
            SchemaProblems: a tool's arguments cannot be held to their schema.
        """

    def forced(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """The expression of an output, after its reasoning, that is calls and nothing else."""
        return self.grammar(lark, rules, lark.text(self.begins[0]), several=several)

    def free(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """The expression of an output, after its reasoning, of text and calls, if there are any."""
        call = self.grammar(lark, rules, lark.up_to(self.begins[0]), several=False)
        text = lark.rule(ANY, lexeme=True)
        return f"({lark.rule(call)}){'*' if several else '?'} {text}"

    def answer(self, lark: Lark, body: str) -> str:
        """The expression of an output, after its reasoning, whose text is `body`."""
        return body

    def read(self, s: Scanner, out: Output, tools: Tools) -> Steps[None]:
        """Take a whole output, after its reasoning."""
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
    """A text that does not begin with this character, or calls, which do."""
    text = lark.rule(rf"/[^\s\{first}](.|\n)*/", lexeme=True)
    return lark.either([text, calls])
