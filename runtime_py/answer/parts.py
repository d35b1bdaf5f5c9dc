"""What an output is made of, as it streams: text, reasoning and calls of tools.

A parser (`Parser`) turns the text that a model writes into parts; all protocols are written from
them. Joined in order, the parts of one kind are the message:

- `Text` is what the user reads, `Reasoning` what the model wrote to itself.
- A call is one `CallBegin`, any number of `CallArguments`, whose texts joined are a JSON object as
  the model wrote it, and one `CallEnd`. Calls have indexes 0, 1, ... and do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Text:
    """Some of the text."""

    text: str


@dataclass(slots=True)
class Reasoning:
    """Some of the reasoning."""

    text: str


@dataclass(slots=True)
class CallBegin:
    """A tool is called; its arguments follow."""

    index: int
    id: str
    name: str


@dataclass(slots=True)
class CallArguments:
    """Some of the arguments of the call that was begun last: a piece of JSON."""

    index: int
    text: str


@dataclass(slots=True)
class CallEnd:
    """The arguments of a call are whole; false if the output ended amid them."""

    index: int
    whole: bool = True


Part = Text | Reasoning | CallBegin | CallArguments | CallEnd


class Parser(Protocol):
    """From the text of one choice to its parts."""

    @property
    def reasoning(self) -> bool:
        """Whether what comes next is reasoning, as far as can be told."""

    @property
    def done(self) -> bool:
        """Whether what was asked for is there, and the rest is not wanted."""

    def push(self, text: str) -> list[Part]:
        """What this text adds. How a text is cut does not change its parts, joined."""

    def finish(self) -> list[Part]:
        """What was held back, at the end of the text."""


class PlainParser:
    """Everything is text."""

    reasoning = False
    done = False

    def push(self, text: str) -> list[Part]:
        """See Parser."""
        return [Text(text)] if text else []

    def finish(self) -> list[Part]:
        """See Parser."""
        return []


def joined(parts: Iterable[Part]) -> list[Part]:
    """The parts with neighbours of one kind as one; takes time as the parts are many."""
    made: list[Part] = []
    texts: list[list[str]] = []  # of each part of `made`
    for part in parts:
        piece = "" if isinstance(part, (CallBegin, CallEnd)) else part.text
        if made and _continues(made[-1], part):
            texts[-1].append(piece)
        else:
            made.append(part)
            texts.append([piece])
    return [_with(part, "".join(pieces)) for part, pieces in zip(made, texts, strict=True)]


def _continues(last: Part, part: Part) -> bool:
    if isinstance(part, CallArguments):
        return isinstance(last, CallArguments) and last.index == part.index
    return isinstance(part, (Text, Reasoning)) and type(last) is type(part)


def _with(part: Part, text: str) -> Part:
    if isinstance(part, CallArguments):
        return CallArguments(part.index, text)
    return part if isinstance(part, (CallBegin, CallEnd)) else type(part)(text)


@dataclass(slots=True)
class Call:
    """A call of a tool; `arguments` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class Message:
    """All parts of an output, sorted by kind."""

    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)


def message_of(parts: Iterable[Part]) -> Message:
    """What these parts come to."""
    message = Message()
    for part in joined(parts):
        if isinstance(part, Text):
            message.text += part.text
        elif isinstance(part, Reasoning):
            message.reasoning += part.text
        elif isinstance(part, CallBegin):
            message.calls.append(Call(part.id, part.name))
        elif isinstance(part, CallArguments):
            message.calls[-1].arguments += part.text
    return message
