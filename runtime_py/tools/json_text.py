"""Reads the JSON that models write, and outputs it piece by piece.

Values are not validated: only brackets and strings tell where a value ends. Mistakes inside of a
value stay, as in OpenAI's API, whose clients must expect them.
"""

from __future__ import annotations

import json
import re

from .scanner import Emit, Scanner, Steps

MAX_NAME = 512  # maximum characters of a key, or of a tool's name

_IN_STRING = re.compile(r'["\\]')
_SCALAR_END = re.compile(r"[,}\]\s]")


def string(s: Scanner, most: int = MAX_NAME) -> Steps[str | None]:
    """Read a string; return None if none comes, or it is longer than `most` characters."""
    if (yield from s.space()) != '"':
        return None
    taken = '"'
    s.at += 1
    while len(taken) <= most:
        char = yield from s.next()
        s.at += len(char)
        taken += char
        if char == "\\":
            escaped = yield from s.next()
            s.at += len(escaped)
            taken += escaped
        if char in ('"', ""):
            break
    try:
        found = json.loads(taken, strict=False)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def value(s: Scanner, emit: Emit, stop: str = "") -> Steps[bool]:
    """Output a value's text; return whether it is complete.

    Args:
        s: the scanner, before the value or before white space.
        emit: receives the pieces of the value.
        stop: a text that ends the value outside of strings, even an incomplete one; the scanner
            stays before it.
    """
    char = yield from s.space()
    if char == '"':
        return (yield from _string(s, emit))
    if char and char in "{[":
        return (yield from _brackets(s, emit, stop))
    while char and not _SCALAR_END.match(char) and not (stop and (yield from _comes(s, stop))):
        emit(char)
        s.at += 1
        char = yield from s.next()
    return bool(char)


def _comes(s: Scanner, literal: str) -> Steps[bool]:
    """Tell whether `literal` comes next; the scanner stays before it."""
    if not (yield from s.accept(literal)):
        return False
    s.at -= len(literal)
    return True


def _handed_on(s: Scanner, emit: Emit, special: re.Pattern[str]) -> Steps[re.Match[str] | None]:
    """Output the text before a match, and return the match; None if the text ends first."""
    while True:
        found = special.search(s.text, s.at)
        end = found.start() if found else len(s.text)
        emit(s.text[s.at : end])
        s.at = end
        if found or not (yield from s.more()):
            return found


def _string(s: Scanner, emit: Emit) -> Steps[bool]:
    emit('"')
    s.at += 1
    while True:
        found = yield from _handed_on(s, emit, _IN_STRING)
        if found is None:
            return False
        s.at += 1
        if found[0] == '"':
            emit('"')
            return True
        escaped = yield from s.next()
        emit("\\" + escaped)
        s.at += len(escaped)


def _brackets(s: Scanner, emit: Emit, stop: str) -> Steps[bool]:
    special = re.compile(r'["{}\[\]]' + (f"|{re.escape(stop[0])}" if stop else ""))
    depth = 0
    while True:
        found = yield from _handed_on(s, emit, special)
        if found is None:
            return False
        char = found[0]
        if stop and char == stop[0] and (yield from _comes(s, stop)):
            return False
        if char == '"':
            if not (yield from _string(s, emit)):
                return False
            continue
        emit(char)
        s.at += 1
        depth += (char in "{[") - (char in "}]")
        if depth <= 0 and char in "{[}]":
            return True


def unquoted(s: Scanner, emit: Emit) -> Steps[bool]:
    """Output a string's content with resolved escapes: some models write arguments as a string."""
    s.at += 1
    while True:
        found = yield from _handed_on(s, emit, _IN_STRING)
        if found is None:
            return False
        s.at += 1
        if found[0] == '"':
            return True
        emit((yield from _escape(s)))


def _escape(s: Scanner) -> Steps[str]:
    r"""Decode a JSON escape; the two halves of a surrogate pair become one character."""
    size = 1 if (yield from s.next()) != "u" else 5
    escape = yield from _take(s, size)
    try:
        made: str = json.loads(f'"\\{escape}"')
    except ValueError:
        return f"\\{escape}"
    if "\ud800" <= made < "\udc00" and (yield from s.accept("\\u")):
        low = yield from _take(s, 4)
        try:
            made = json.loads(f'"\\{escape}\\u{low}"')
        except ValueError:
            return f"\N{REPLACEMENT CHARACTER}\\u{low}"
    return made.encode("utf-8", "replace").decode()


def _take(s: Scanner, size: int) -> Steps[str]:
    while len(s.text) - s.at < size:
        if not (yield from s.more()):
            break
    taken = s.text[s.at : s.at + size]
    s.at += len(taken)
    return taken
