"""How outputs are read: app/tools by libwherry_readers, which only builds for tests have."""

from __future__ import annotations

import ctypes
import json
import weakref
from collections.abc import Iterable, Mapping
from ctypes import c_char_p, c_size_t, c_void_p
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from wherry.data import read

from ..app.programs import BUILD


@dataclass(frozen=True)
class Thoughts:
    """The two marks around reasoning."""

    begin: str
    end: str


MARKS = tuple(Thoughts(**row) for row in read("reasoning_marks"))


@dataclass
class Text:
    text: str


@dataclass
class Reasoning:
    text: str


@dataclass
class CallBegin:
    index: int
    id: str
    name: str
    custom: bool = False


@dataclass
class CallArguments:
    index: int
    text: str


@dataclass
class CallEnd:
    index: int
    complete: bool = True


_KINDS = {
    "text": Text,
    "reasoning": Reasoning,
    "begin": CallBegin,
    "arguments": CallArguments,
    "end": CallEnd,
}


@dataclass(frozen=True)
class Tools:
    """The tools of a request: schemas by name, and whether a grammar enforces the format."""

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    constrained: bool = False


def thoughts_of(template: str) -> Thoughts | None:
    return next((m for m in MARKS if m.end in template), None)


def opened(thoughts: Thoughts, prompt: str) -> bool:
    return prompt.rstrip().endswith(thoughts.begin)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(BUILD / "libwherry_readers.so"))
    for name, result, arguments in (
        ("wherry_reader_error", c_char_p, ()),
        ("wherry_reader_family", c_char_p, (c_char_p,)),
        ("wherry_reader_open", c_void_p, (c_char_p, c_size_t)),
        ("wherry_reader_push", c_char_p, (c_void_p, c_char_p, c_size_t)),
        ("wherry_reader_finish", c_char_p, (c_void_p,)),
        ("wherry_reader_close", None, (c_void_p,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def family_of(name: str) -> bytes:
    """JSON of what a family's format says of its calls."""
    answer: bytes | None = _library().wherry_reader_family(name.encode())
    assert answer, _library().wherry_reader_error()
    return answer


class OutputParser:
    """Parses the output of one choice into reasoning, text and calls.

    Args:
        family: the format of calls, or its name; None: the output has no calls.
        custom: names of custom tools.
        most: maximum number of calls.
    """

    def __init__(
        self, family, tools: Tools = Tools(), thoughts=None, *, opened=False, most=None, custom=()
    ) -> None:
        self._api = _library()
        options = {
            "family": getattr(family, "name", family),
            "tools": tools.schemas,
            "held": tools.constrained,
            "thoughts": [thoughts.begin, thoughts.end] if thoughts else None,
            "opened": opened,
            "most": most,
            "custom": list(custom),
        }
        data = json.dumps(options).encode()
        self._handle = self._api.wherry_reader_open(data, len(data))
        assert self._handle, self._api.wherry_reader_error()
        weakref.finalize(self, self._api.wherry_reader_close, self._handle)
        self.reasoning = opened and thoughts is not None
        self.done = False

    def push(self, text: str) -> list[Any]:
        data = text.encode(errors="replace")
        return self._read(self._api.wherry_reader_push(self._handle, data, len(data)))

    def finish(self) -> list[Any]:
        return self._read(self._api.wherry_reader_finish(self._handle))

    def _read(self, answer: bytes | None) -> list[Any]:
        assert answer, self._api.wherry_reader_error()
        self.reasoning, self.done, *parts = json.loads(answer)
        return [_KINDS[kind](*fields) for kind, *fields in parts]


@dataclass
class Call:
    id: str
    name: str
    arguments: str = ""
    custom: bool = False


@dataclass
class Message:
    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)


def message_of(parts: Iterable[Any]) -> Message:
    """The parts by kind."""
    message = Message()
    for part in parts:
        if isinstance(part, Text):
            message.text += part.text
        elif isinstance(part, Reasoning):
            message.reasoning += part.text
        elif isinstance(part, CallBegin):
            message.calls.append(Call(part.id, part.name, custom=part.custom))
        elif isinstance(part, CallArguments):
            message.calls[-1].arguments += part.text
    return message


def joined(parts: Iterable[Any]) -> list[Any]:
    """Parts in which neighbours of a kind are one."""
    result: list[Any] = []
    for part in parts:
        last = result[-1] if result else None
        same = type(last) is type(part) and isinstance(part, Text | Reasoning | CallArguments)
        if same and getattr(last, "index", None) == getattr(part, "index", None):
            last.text += part.text
        else:
            result.append(part)
    return result
