"""The framing by which a protocol writes the chunks of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...answer.lazy import json_text
from ...answer.shapes import Shape
from .errors import ApiError, ErrorShape, body


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of one protocol's streams.

    Attributes:
        media_type: media type of the stream.
        chunk: function that writes one chunk.
        error: shape of an error after the first byte, which ends the stream.
        failure: function that writes such an error.
        last: bytes at the end of a stream without an error.
    """

    media_type: str
    chunk: Callable[[Mapping[str, Any]], bytes]
    error: ErrorShape = body
    failure: Callable[[Mapping[str, Any]], bytes] | None = None
    last: bytes = b""

    def of(self, chunk: Shape) -> bytes:
        """Return the bytes of a chunk."""
        return self.chunk(chunk.dumped())

    def of_error(self, error: ApiError) -> bytes:
        """Return the bytes of an error inside of a stream."""
        return (self.failure or self.chunk)(self.error(error))


@dataclass(slots=True)
class Plain(Shape):
    """A response, or a chunk of one, that is already a dictionary."""

    value: dict[str, Any]

    def dumped(self) -> dict[str, Any]:
        """Return the dictionary itself; overrides `Shape.dumped`."""
        return self.value


def _json(value: Mapping[str, Any]) -> bytes:
    return json_text(value).encode(errors="surrogatepass")


def event(value: Mapping[str, Any]) -> bytes:
    """Return a server-sent event without a name; JSON has no newline, so one line is enough."""
    return b"data: %b\n\n" % _json(value)


def named_event(value: Mapping[str, Any]) -> bytes:
    """Return a server-sent event with the value's `type` as its name."""
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), _json(value))


def line(value: Mapping[str, Any]) -> bytes:
    """Return a value as a line of JSON."""
    return _json(value) + b"\n"


OPENAI = Framing("text/event-stream", event, last=b"data: [DONE]\n\n")
