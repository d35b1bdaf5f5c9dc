"""Reads text from the user: on the command line, on stdin, line by line."""

from __future__ import annotations

import sys
from typing import Any

import click


class _Text(click.ParamType[str]):
    """Option type: text without surrogates, by which Python represents bytes that are not UTF-8."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        where = param.human_readable_name if param else "the text"
        return text_of(str(value), where)


TEXT = _Text()


def text_of(value: str, where: str) -> str:
    """Return `value` if it is valid Unicode text.

    Raises:
        UsageError: the message has the first invalid byte.
    """
    try:
        value.encode()
    except UnicodeEncodeError as e:
        byte = value[e.start].encode(
            "utf-8", "surrogateescape" if _is_byte(value[e.start]) else "surrogatepass"
        )
        raise _not_text(where, e.start, byte) from e
    return value


def read_stdin() -> str:
    """Read all of stdin as UTF-8.

    Raises:
        UsageError: the message has the first invalid byte.
    """
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise _not_text("stdin", e.start, data[e.start : e.start + 1]) from e


def _is_byte(character: str) -> bool:
    return "\udc80" <= character <= "\udcff"


def _not_text(where: str, place: int, byte: bytes) -> click.UsageError:
    return click.UsageError(
        f"{where} is not UTF-8: {byte!r} at {place}. Convert it first: iconv -t UTF-8"
    )
