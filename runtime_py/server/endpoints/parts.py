"""A response in parts, which C++ writes for the protocols that are not OpenAI's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ...answers import Timings, Usage
from ...host.running import Running
from ...shaped import shaped
from ..wire.framing import Chunk
from ..wire.json_body import encoded_blocks

Json = dict[str, Any]
IN_PARTS: Mapping[str, Any] = {
    "in_parts": True
}  # the option of a request whose response is read here


class Text(NamedTuple):
    """A piece of the text for the user."""

    text: str


class Reasoning(NamedTuple):
    """A piece of the reasoning."""

    text: str


class CallBegin(NamedTuple):
    """The beginning of a call."""

    id: str
    name: str
    custom: bool


class CallArguments(NamedTuple):
    """A piece of a call's arguments, which together are JSON, or of a custom tool's input."""

    text: str


class CallEnd(NamedTuple):
    """The end of a call; incomplete: the output ended within the arguments."""

    complete: bool


Part = Text | Reasoning | CallBegin | CallArguments | CallEnd
_KINDS: Mapping[str, type[Any]] = {
    "text": Text,
    "reasoning": Reasoning,
    "call": CallBegin,
    "arguments": CallArguments,
    "end": CallEnd,
}


@dataclass(slots=True)
class Delta:
    """New parts of one choice (a stream), or all of its parts (a whole response).

    Attributes:
        parts: text, reasoning and calls, in order.
        finish: why the choice ended, as in OpenAI's API; None while it runs.
        stop: the stop string that ended it, or None.
        logprobs: OpenAI's records of its tokens, if they were requested.
    """

    parts: list[Part] = field(default_factory=list)
    finish: str | None = None
    stop: str | None = None
    logprobs: list[Json] = field(default_factory=list)

    @classmethod
    def of(cls, chunk: Mapping[str, Any]) -> Delta:
        """Return the delta in a chunk of C++ (app/chat/parts_reply.h)."""
        parts = [_KINDS[kind](*fields) for kind, *fields in chunk["parts"]]
        return cls(parts, chunk["finish"], chunk["stop"], chunk.get("logprobs", []))

    @property
    def text(self) -> str:
        """Return the text for the user, without reasoning and calls."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


class Reply(Protocol):
    """The writer of one protocol's response to a request with one choice."""

    def opening(self, usage: Usage, running: Running) -> Sequence[Json]:
        """Note the opened request, and return the chunks before the first delta of a stream."""

    def chunks(self, delta: Delta) -> Sequence[Json]:
        """Return the chunks for a delta; `delta.finish` marks the end of the output."""

    def closing(self, usage: Usage, timings: Timings) -> Sequence[Json]:
        """Return the chunks that a stream sends after the end of the output."""

    def full_response(self, delta: Delta, usage: Usage, timings: Timings) -> Json:
        """Return the response of a request without streaming; the delta is all of it."""


class Translated:
    """Writes a response in a protocol; implements `pipeline.Writer`."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def opening(self, running: Running) -> Sequence[Chunk]:
        """Return the chunks before the first delta; implements `Writer.opening`."""
        tokens = running.opened["prompt_tokens"]
        return self._reply.opening(Usage(tokens, 0, tokens), running)

    def chunks(self, data: bytes) -> Sequence[Chunk]:
        """Return the chunks for one chunk of C++; implements `Writer.chunks`."""
        chunk = json.loads(data)
        if "usage" in chunk:
            return self._reply.closing(*_counts(chunk))
        return self._reply.chunks(Delta.of(chunk))

    def full_response(self, data: bytes) -> Iterator[bytes]:
        """Yield the JSON of a whole response; implements `Writer.full_response`."""
        response = json.loads(data)
        (choice,) = response["choices"]
        return encoded_blocks(self._reply.full_response(Delta.of(choice), *_counts(response)))


def _counts(response: Mapping[str, Any]) -> tuple[Usage, Timings]:
    return shaped(Usage, response["usage"]), shaped(Timings, response["timings"])
