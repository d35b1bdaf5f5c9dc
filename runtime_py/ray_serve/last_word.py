"""Writes the error at the end of a stream whose replica died."""

from __future__ import annotations

from ..server.wire.errors import ApiError, shape_of
from ..server.wire.framing import event, line, named_event

LOST = ApiError(503, "The replica that answered was lost", code="replica_lost")


def last_word(media_type: str, path: str) -> bytes | None:
    """Return the error LOST in the stream's protocol; None: the response is no stream."""
    value, kind = shape_of(path)(LOST), media_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return named_event(value) if isinstance(value.get("type"), str) else event(value)
    return line(value) if kind == "application/x-ndjson" else None
