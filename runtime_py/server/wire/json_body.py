"""Parses JSON from untrusted clients; its structure is measured before Python creates objects.

A body of 16 MiB can have millions of values. Each costs a hundred bytes, and parsing holds the GIL.
NumPy measures a MiB in some milliseconds, without the GIL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import RequestError

# maximum number of values; lists of token ids are the longest values that clients send
MAX_VALUES = 2**19
MAX_CONTAINERS = 2**16  # maximum number of objects and arrays
MAX_NAMES = 2**16  # maximum number of field names in all objects
MAX_DEPTH = 64
MAX_DIGITS = 64  # maximum number of digits of an integer, whose parsing takes quadratic time
_BLOCK = 2**20  # bytes that are measured in one NumPy operation
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_LEVEL = np.zeros(256, np.int8)  # change of the nesting depth at each character outside of strings
_LEVEL[list(b"[{")] = 1
_LEVEL[list(b"]}")] = -1


@dataclass(slots=True)
class Structure:
    """Counts that bound the parsed objects.

    `values` omits one value of each non-empty container.
    """

    values: int = 0
    containers: int = 0
    names: int = 0
    depth: int = 0

    def check(self) -> None:
        """Check that the counts are within the limits.

        Raises:
            RequestError: a count exceeds its limit, which the message has.
        """
        for value, limit, what in (
            (self.values, MAX_VALUES, "values"),
            (self.containers, MAX_CONTAINERS, "objects and lists"),
            (self.names, MAX_NAMES, "fields"),
            (self.depth, MAX_DEPTH, "levels"),
        ):
            if value > limit:
                raise RequestError(
                    f"The body's JSON has more than {limit} {what}", code="invalid_json"
                )


def parse_json(body: bytes) -> Any:
    """Return the parsed JSON of a body; any thread may call this.

    Raises:
        RequestError: the body is not JSON in UTF-8, or exceeds the limits above.
    """
    # a short body exceeds no other limit, and most are short
    if len(body) > MAX_NAMES or body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        measure(body)
    try:
        return json.loads(body.decode("utf-8-sig"), parse_int=_integer)
    except (ValueError, RecursionError) as e:
        raise RequestError(f"The body is not JSON: {e}", code="invalid_json") from e


def measure(body: bytes) -> Structure:
    """Return the counts of values, containers and names in a body.

    Raises:
        RequestError: a count exceeds its limit; the rest is not read.
    """
    structure, level, inside = Structure(), 0, np.uint8(0)
    for piece in _pieces(body):
        within = np.bitwise_xor.accumulate((piece == ord('"')).view(np.uint8)) ^ inside
        outside = piece[within == 0]
        inside = within[-1]
        count = np.bincount(outside, minlength=256)
        levels = level + np.cumsum(_LEVEL[outside], dtype=np.int32)
        structure.containers += int(count[ord("[")] + count[ord("{")])
        structure.names += int(count[ord(":")])
        structure.values += int(count[ord(",")])
        if len(levels):
            structure.depth, level = max(structure.depth, int(levels.max())), int(levels[-1])
        structure.check()
    return structure


def _pieces(body: bytes) -> Iterator[np.ndarray]:
    """Yield the body in blocks that cut no escape, with escaped quotes replaced."""
    at = 0
    while at < len(body):
        end = at + _BLOCK
        piece = body[at:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = body[at : end + 1]
        at += len(piece)
        # replaced from the left, so that the backslashes of a run pair off as JSON escapes
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        yield np.frombuffer(piece, np.uint8)


def encoded(value: Any, depth: int = 5) -> bytes:
    """Return the JSON bytes of a large response.

    It is encoded in parts, because the encoder holds the GIL.
    """
    return b"".join(encoded_blocks(value, depth))


def encoded_blocks(value: Any, depth: int = 5) -> Iterator[bytes]:
    """Yield the JSON bytes of a response in blocks, so that memory holds the text only once."""
    parts: list[str] = []
    size = 0
    for part in _parts(value, depth):
        parts.append(part)
        size += len(part)
        if size >= _BLOCK:
            yield "".join(parts).encode(errors="replace")
            parts, size = [], 0
    yield "".join(parts).encode(errors="replace")


def blocks_of(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of a response in blocks."""
    return (data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK))


def _parts(value: Any, depth: int) -> Iterator[str]:
    """Yield a value's JSON in parts, because the encoder holds the GIL while it writes a part.

    Down to nesting depth `depth`, each item is a part of its own.

    Raises:
        ValueError: the value has NaN or infinity, which JSON cannot express.
    """
    if not depth or not value or not isinstance(value, (dict, list)):
        yield _ENCODER.encode(value)
        return
    comma, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    for item in value.items() if isinstance(value, dict) else value:
        if isinstance(value, dict):
            yield f"{comma}{_ENCODER.encode(item[0])}:"
            yield from _parts(item[1], depth - 1)
        else:
            yield comma
            yield from _parts(item, depth - 1)
        comma = ","
    yield end


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)
