"""How the chunks of a stream are written: a protocol's own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...answer.lazy import json_text
from ...answer.shapes import Shape
from .errors import ApiError, ErrorShape, body


@dataclass(frozen=True, slots=True)
class Framing:
    """One protocol's streams.

    Attributes:
        media_type: of the whole.
        chunk: writes one chunk.
        error: the shape of an error after the first byte, which ends the stream.
        failure: writes such an error.
        last: what ends a stream that did not fail.
    """

    media_type: str
    chunk: Callable[[Mapping[str, Any]], bytes]
    error: ErrorShape = body
    failure: Callable[[Mapping[str, Any]], bytes] | None = None
    last: bytes = b""

    def of(self, chunk: Shape) -> bytes:
        """The bytes of a chunk."""
        return self.chunk(chunk.dumped())

    def of_error(self, error: ApiError) -> bytes:
        """The bytes of an error."""
        return (self.failure or self.chunk)(self.error(error))


@dataclass(slots=True)
class Plain(Shape):
    """An answer, or a chunk of one, made as the dictionary that it is sent as."""

    value: dict[str, Any]

    def dumped(self) -> dict[str, Any]:
        """See Shape."""
        return self.value


def _json(value: Mapping[str, Any]) -> bytes:
    return json_text(value).encode(errors="surrogatepass")


def event(value: Mapping[str, Any]) -> bytes:
    """A server-sent event without a name; JSON has no newline, so one line holds it."""
    return b"data: %b\n\n" % _json(value)


def named_event(value: Mapping[str, Any]) -> bytes:
    """A server-sent event named by the value's `type`."""
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), _json(value))


def line(value: Mapping[str, Any]) -> bytes:
    """A line of JSON."""
    return _json(value) + b"\n"


OPENAI = Framing("text/event-stream", event, last=b"data: [DONE]\n\n")
