"""The parts of a streamed output: text, reasoning and tool calls.

A parser (`Parser`) turns the model's text into parts, and every protocol is written from them. The
parts of one kind, joined in order, are the message:

- `Text` is the answer, `Reasoning` what the model wrote before it.
- A call is one `CallBegin`, any number of `CallArguments`, whose texts joined are a JSON object as
  the model wrote it (the bare text for a custom tool), and one `CallEnd`. Calls have indexes
  0, 1, ... and do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Text:
    """A piece of the response's text."""

    text: str


@dataclass(slots=True)
class Reasoning:
    """A piece of the model's reasoning."""

    text: str


@dataclass(slots=True)
class CallBegin:
    """The beginning of a tool call; its arguments, or the input of a custom tool, follow."""

    index: int
    id: str
    name: str
    custom: bool = False


@dataclass(slots=True)
class CallArguments:
    """A piece of the arguments of the tool call that began last: of JSON, or of a custom input."""

    index: int
    text: str
    custom: bool = False


@dataclass(slots=True)
class CallEnd:
    """The end of a tool call; `whole` is False if the output ended inside of the arguments."""

    index: int
    whole: bool = True


Part = Text | Reasoning | CallBegin | CallArguments | CallEnd


class Parser(Protocol):
    """The interface of a parser, which turns the text of one choice into parts."""

    @property
    def reasoning(self) -> bool:
        """Tell whether the next text is reasoning, as far as the parser knows."""

    @property
    def done(self) -> bool:
        """Tell whether the output has all that was requested, so that the rest can be dropped."""

    def push(self, text: str) -> list[Part]:
        """Parse more text and return new parts.

        The joined parts do not depend on where the text was cut.
        """

    def finish(self) -> list[Part]:
        """Return the parts of the text that was withheld until the end."""


class PlainParser:
    """A parser that treats everything as text."""

    reasoning = False
    done = False

    def push(self, text: str) -> list[Part]:
        """Return the text as one part; implements `Parser.push`."""
        return [Text(text)] if text else []

    def finish(self) -> list[Part]:
        """Return no parts, because no text is withheld; implements `Parser.finish`."""
        return []


def joined(parts: Iterable[Part]) -> list[Part]:
    """Join neighbouring parts of one kind, in linear time."""
    made: list[Part] = []
    texts: list[list[str]] = []  # the pieces of text that are joined to each part of `made`
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
        return CallArguments(part.index, text, part.custom)
    return part if isinstance(part, (CallBegin, CallEnd)) else type(part)(text)


@dataclass(slots=True)
class Call:
    """A tool call; `arguments` is JSON as the model wrote it, or the input of a custom tool."""

    id: str
    name: str
    arguments: str = ""
    custom: bool = False


@dataclass(slots=True)
class Message:
    """All parts of an output, sorted by kind."""

    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)


def message_of(parts: Iterable[Part]) -> Message:
    """Return a message with the parts of an output sorted by kind."""
    message = Message()
    for part in joined(parts):
        if isinstance(part, Text):
            message.text += part.text
        elif isinstance(part, Reasoning):
            message.reasoning += part.text
        elif isinstance(part, CallBegin):
            message.calls.append(Call(part.id, part.name, custom=part.custom))
        elif isinstance(part, CallArguments):
            message.calls[-1].arguments += part.text
    return message
