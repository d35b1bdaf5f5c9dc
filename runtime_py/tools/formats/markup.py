"""Calls in angle brackets, with an element for each argument.

Qwen3-Coder, GLM, MiniMax and DeepSeek V3.2 write them.

The tool's schema decides whether an element's content is a text, a number or JSON: an argument that
can only be a string is taken unchanged; other content is JSON if it parses, else a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..format import Format, Rule, Tools
from ..lark import Lark
from ..markup_rules import element, members
from ..output import Output
from ..python_text import is_json, whole
from ..scanner import Emit, Scanner, Steps

_NAME = re.compile(r"[^\s<>\"'=|{}]+")
_ATTRIBUTES = re.compile(r"[^<>]*")
_PYTHON = {"True": True, "False": False, "None": None}


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
        unclosed: texts that end an unclosed value, unless a grammar is enforced.
        wrappers: names of a single argument that may be an object of all arguments, if the tool has
            no argument of this name.
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
    unclosed: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = ()

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

    @property
    def example(self) -> str:
        """Return an example of a call for prompts; implements `Format.example`."""
        typed = '" string="true"' if self.typed else ""
        keyed, pad = self.line.join(self.keyed), self.pad
        element = f"{self.key}KEY{typed}{keyed}{pad}VALUE{pad}{self.ended}{self.line}"
        name = f"{self.line}{self.call}NAME{self.named}{self.line}" if self.call else "NAME"
        end = f"{self.call_end}{self.line}" if self.call else ""
        return f"{self.outer}{name}{element}{end}{self.outer_end}"

    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """Read the calls after `begin`; return whether any came. Implements `Format.calls`."""
        if self.call and begin != self.call:
            yield from s.space()
            if not (yield from s.accept(self.call)):
                return False
        if not (yield from self._call(s, out, tools)):
            return False
        while self.several and not out.full:
            yield from s.space()
            if not (yield from s.accept(self.call)):
                break
            if not (yield from s.attempt(self._call(s, out, tools))):
                out.text(self.call)
                break
        yield from s.space()
        yield from s.accept(self.outer_end)
        return True

    def _call(self, s: Scanner, out: Output, tools: Tools) -> Steps[bool]:
        yield from s.space()
        name = yield from s.match(_NAME)
        if not name:
            return False
        if self.call:
            if not (yield from s.accept(self.named)):
                return False
        else:  # after the name only an argument or the end may follow
            yield from s.space()
            at = s.at
            if (yield from s.accept_one((self.key, self.outer_end))) is None:
                return False
            s.at = at
        s.release()
        out.begin(name)
        yield from self._arguments(s, out, tools, name)
        return True

    def _arguments(self, s: Scanner, out: Output, tools: Tools, name: str) -> Steps[None]:
        if self.wrappers and (yield from s.attempt(self._wrapped(s, out, tools, name))):
            return
        count = 0
        out.arguments("{")
        while True:
            yield from s.space()
            if not (yield from s.accept(self.key)):
                break
            key = yield from s.match(_NAME)
            attributes = yield from self._behind_key(s)
            out.arguments(f"{', ' if count else ''}{json.dumps(key, ensure_ascii=False)}: ")
            count += 1
            kinds = tools.kinds(name, key)
            if 'string="' in attributes:
                kinds = ("string",) if 'string="true"' in attributes else ("object",)
            ends = (self.ended, *(() if tools.held else self.unclosed))
            if not (yield from self._value(s, out.arguments, kinds, ends)):
                out.end(whole=False)
                return
        closing = self.call_end or self.outer_end
        closed = yield from s.accept(closing)
        rest = s.text[s.at :]
        if not closed and s.ended and any(t.startswith(rest) for t in (self.key, closing)):
            s.at += len(rest)  # the output ended in the middle of a marker
            out.end(whole=False)
            return
        if closed and not self.call_end:
            s.at -= len(closing)
        out.arguments("}")
        out.end()

    def _behind_key(self, s: Scanner) -> Steps[str]:
        """Read the text between an argument's name and value; return the attributes in it."""
        attributes = yield from s.match(_ATTRIBUTES) if self.typed else _nothing()
        for literal in self.keyed:
            yield from s.space()
            yield from s.accept(literal)
        return attributes

    def _wrapped(self, s: Scanner, out: Output, tools: Tools, name: str) -> Steps[bool]:
        """Read an argument that contains all others, and the call's end.

        Return whether it exists.
        """
        yield from s.space()
        if not (yield from s.accept(self.key)):
            return False
        key = yield from s.match(_NAME)
        if key not in self.wrappers or tools.declares(name, key):
            return False
        yield from self._behind_key(s)
        pieces: list[str] = []
        yield from s.until((self.ended,), pieces.append)
        text = "".join(pieces).strip()
        yield from s.space()
        if not text.startswith("{") or not is_json(text):
            return False
        if not (yield from s.accept(self.call_end)):
            return False
        out.arguments(text)
        out.end()
        return True

    def _value(
        self, s: Scanner, emit: Emit, kinds: Sequence[str], ends: tuple[str, ...]
    ) -> Steps[bool]:
        """Output a value as JSON; return whether the value is complete."""
        if self.pad:
            yield from s.accept(self.pad)
        if tuple(kinds) == ("string",):
            emit('"')
            held = _Held(emit, self.pad)
            found = yield from _up_to_end(s, held.push, ends)
            if found:
                emit('"')
            else:
                held.flush()
            return found
        pieces: list[str] = []
        found = yield from _up_to_end(s, pieces.append, ends)
        text = "".join(pieces)
        if found:
            emit(_as_json(text.removesuffix(self.pad) if self.pad else text, kinds))
        return found

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
            is_text, inner = element(lark, schema, rule.schema, self.pad + self.ended)
            attribute = f'" string="{str(is_text).lower()}"' if self.typed else ""
            head = lark.text(self.key + key + attribute + self.line.join(self.keyed) + self.pad)
            one = f"{head} {inner} {lark.text(self.line)}"
            made.append(one if key in required else f"({one})?")
        return " ".join(made)


def _up_to_end(s: Scanner, emit: Emit, ends: tuple[str, ...]) -> Steps[bool]:
    """Output text up to the first of `ends`, and read that; return whether one came."""
    found = yield from s.until(ends, emit)
    if found != ends[0]:
        s.at -= len(found)
    return bool(found)


def _nothing() -> Steps[str]:
    return ""
    yield


class _Held:
    """Outputs a string's text as JSON without the white space `pad` at its end."""

    def __init__(self, emit: Emit, pad: str) -> None:
        self._emit, self._pad, self._text = emit, pad, ""

    def push(self, text: str) -> None:
        self._text += text
        keep = 0
        if self._pad and self._text.endswith(self._pad):
            keep = len(self._pad)
        cut = len(self._text) - keep
        shown, self._text = self._text[:cut], self._text[cut:]
        self._emit(json.dumps(shown, ensure_ascii=False)[1:-1])

    def flush(self) -> None:
        self._emit(json.dumps(self._text, ensure_ascii=False)[1:-1])
        self._text = ""


def _as_json(text: str, kinds: Sequence[str]) -> str:
    """Return a value as JSON: the text itself if it is JSON of an accepted type."""
    bare = text.strip()
    if "string" in kinds and not _is_of(bare, kinds):
        return json.dumps(text, ensure_ascii=False)
    if bare in _PYTHON:
        return json.dumps(_PYTHON[bare])
    if is_json(bare):
        return bare
    # Templates that print Python literals have taught some models to write them.
    return whole(bare) or json.dumps(text, ensure_ascii=False)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def _is_of(text: str, kinds: Sequence[str]) -> bool:
    """Tell whether a text is JSON of one of these types other than string."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return any(type(found) in _TYPES.get(kind, ()) for kind in kinds)
