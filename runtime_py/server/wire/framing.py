"""The framing by which a protocol writes the chunks of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ApiError, ErrorShape, body

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
Chunk = bytes | Mapping[str, Any]  # a JSON object, written or not


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of one protocol's streams.

    Attributes:
        media_type: media type of the stream.
        chunk: function that writes one chunk.
        error: shape of an error after the first byte, which ends the stream.
        failure: function that writes such an error.
        last: bytes at the end of a stream without an error.
        keep_alive: returns bytes that show that a stream without chunks still runs; None: the
            protocol has none.
    """

    media_type: str
    chunk: Callable[[Any], bytes]
    error: ErrorShape = body
    failure: Callable[[Mapping[str, Any]], bytes] | None = None
    last: bytes = b""
    keep_alive: Callable[[], bytes] | None = None

    def of_error(self, error: ApiError) -> bytes:
        """Return the bytes of an error inside of a stream."""
        return (self.failure or self.chunk)(self.error(error))


def _json(value: Chunk) -> bytes:
    return value if isinstance(value, bytes) else _ENCODER.encode(value).encode(errors="replace")


def event(value: Chunk) -> bytes:
    """Return a server-sent event without a name; JSON has no newline, so one line is enough."""
    return b"data: %b\n\n" % _json(value)


def named_event(value: Mapping[str, Any]) -> bytes:
    """Return a server-sent event with the value's `type` as its name."""
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), _json(value))


def line(value: Mapping[str, Any]) -> bytes:
    """Return a value as a line of JSON."""
    return _json(value) + b"\n"


OPENAI = Framing(
    "text/event-stream",
    event,
    last=b"data: [DONE]\n\n",
    keep_alive=lambda: b": keep-alive\n\n",
)
IGNORED_HEADER = "X-Wherry-Ignored"
ADAPTED_HEADER = "X-Wherry-Adapted"  # how the messages were adapted to the chat template


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """Return the header that lists fields without effect; {} without names."""
    # A header contains Latin-1 without control characters, so other characters are escaped.
    listed = ", ".join(n[:100].encode("ascii", "backslashreplace").decode() for n in names)
    return {IGNORED_HEADER: _printable(listed)} if names else {}


def headers_of(ignored: Sequence[str], adapted: Sequence[str]) -> dict[str, str]:
    """Return the headers that list fields without effect, and how the messages were adapted."""
    headers = ignored_header(ignored)
    if adapted:
        headers[ADAPTED_HEADER] = ", ".join(adapted)
    return headers


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:1024]
