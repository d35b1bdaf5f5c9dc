"""Reads tool calls that are JSON objects: {"name": ..., "arguments": {...}}, or similar keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .json_text import string, unquoted, value
from .output import Output
from .scanner import Emit, Scanner, Steps


@dataclass(frozen=True, slots=True)
class CallObject:
    """The form of a tool call's JSON object.

    Attributes:
        name: keys that may have the tool's name.
        arguments: keys that may have the arguments.
        end: text after the object; unclosed arguments end there.
        ids: whether the object's "id" is the id of the call.
    """

    name: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments", "parameters")
    end: str = ""
    ids: bool = False

    def read(self, s: Scanner, out: Output, known: Collection[str] | None) -> Steps[bool]:
        """Read a tool call; nothing is output before its name is known.

        Args:
            s: the scanner, before the object or before white space.
            out: the output that gets the call.
            known: names of tools that may be called; None: any name.

        Returns:
            Whether a call was found. If so, all of it is read, or as much as exists.
        """
        return (yield from _Reading(self, s, out, known).run())

    def list(self, s: Scanner, out: Output, known: Collection[str] | None) -> Steps[bool]:
        """Read a list [call, call, ...], or a single call; return whether a call was found."""
        if (yield from s.space()) != "[":
            return (yield from self.read(s, out, known))
        s.at += 1
        found = yield from self.read(s, out, known)
        while found and (yield from s.space()) == ",":
            s.at += 1
            yield from s.attempt(self.read(s, out, known))
        if found and (yield from s.space()) == "]":
            s.at += 1
        return found


class _Reading:
    """The state while a scanner reads one object."""

    def __init__(
        self, form: CallObject, s: Scanner, out: Output, known: Collection[str] | None
    ) -> None:
        self._form, self._s, self._out, self._known = form, s, out, known
        self._name: str | None = None
        self._id: str | None = None
        self._early: list[str] | None = None  # pieces of arguments that came before the name
        self._begun = False
        self._nested = False

    def run(self) -> Steps[bool]:
        closed = yield from self._object()
        if not self._begun:
            if not closed or not self._name:
                return False
            self._late()
        return True

    def _object(self) -> Steps[bool]:
        """Read the object's members; return whether the object is complete."""
        s = self._s
        if (yield from s.space()) != "{":
            return False
        s.at += 1
        while (yield from s.space()) != "}":
            key = yield from string(s)
            if key is None or (yield from s.space()) != ":":
                return False
            s.at += 1
            if not (yield from self._member(key)):
                return False
            if (yield from s.space()) == ",":
                s.at += 1
        s.at += 1
        return True

    def _member(self, key: str) -> Steps[bool]:
        s, form = self._s, self._form
        first = yield from s.space()
        if first == '"' and key in (*form.name, "function") and self._name is None:
            self._name = yield from string(s)
            return bool(self._name) and (self._known is None or self._name in self._known)
        # OpenAI's form nests name and arguments in "function"
        if first == "{" and key == "function" and not self._nested:
            self._nested = True
            return (yield from self._object())
        if key in form.arguments and not self._begun and self._early is None:
            return (yield from self._arguments(first))
        if first == '"' and key == "id" and form.ids:
            self._id = yield from string(s)
            return self._id is not None
        return (yield from value(s, lambda _: None, form.end))

    def _arguments(self, first: str) -> Steps[bool]:
        s, out = self._s, self._out
        emit: Emit = out.arguments
        if self._name is None:
            self._early = []
            emit = self._early.append
        else:
            self._begin()
        if first == '"':
            whole = yield from unquoted(s, emit)
        elif first == "n":  # the value is null
            whole = yield from value(s, lambda _: None, self._form.end)
            emit("{}")
        else:
            whole = yield from value(s, emit, self._form.end)
        if self._begun:
            out.end(whole=whole)
        return whole

    def _begin(self) -> None:
        self._begun = True
        self._s.release()
        self._out.begin(self._name or "", self._id)

    def _late(self) -> None:
        """Output a call whose name came after its arguments, or that has no arguments."""
        self._begin()
        self._out.arguments("".join(self._early or ["{}"]))
        self._out.end()
