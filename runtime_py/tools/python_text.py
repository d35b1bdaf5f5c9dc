"""Reads Python literals, and text that resembles them, and outputs JSON."""

from __future__ import annotations

import json
import re

from .scanner import Emit, Scanner, Steps

_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
_WORD = re.compile(r"[A-Za-z_]\w*")
_BARE = re.compile(r"[^,()\[\]{}=:\n]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_MAX_DEPTH = 64


def value(
    s: Scanner, emit: Emit, quote: str = "", depth: int = 0, *, argument: bool = False
) -> Steps[bool]:
    """Output a value; return whether it is complete.

    Args:
        s: the scanner, before the value or before white space.
        emit: receives the pieces of JSON.
        quote: a further quotation mark of strings, which never occurs inside of them.
        depth: the number of lists and dictionaries around the value.
        argument: whether the value is an argument of a call in Python's syntax.
    """
    char = yield from s.space()
    if quote and (yield from s.accept(quote)):
        return (yield from _quoted(s, emit, quote))
    if char in ("'", '"'):
        return (yield from _string(s, emit, char, argument=argument))
    if char and char in _CLOSING and depth < _MAX_DEPTH:
        return (yield from _items(s, emit, quote, depth))
    word = (yield from s.match(_BARE, 1 << 16)).strip()
    emit(_of_word(word))
    return bool((yield from s.next()))


def is_json(text: str) -> bool:
    """Tell whether a text is JSON; Python's reader also accepts NaN and Infinity."""
    try:
        json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return True


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _of_word(word: str) -> str:
    """Return the JSON of a number, a constant, or a string without quotes.

    Only ASCII digits count, as in Python's source; `int` accepts others.
    """
    if word in _WORDS:
        return _WORDS[word]
    if is_json(word):
        return word
    numbers = (lambda: int(word, 0), lambda: int(word), lambda: float(word))
    for number in numbers if word.isascii() else ():
        try:
            return json.dumps(number(), allow_nan=False)
        except ValueError:
            continue
    return json.dumps(word, ensure_ascii=False)


def whole(text: str) -> str | None:
    """Return the JSON of a text that is one list, tuple or dictionary; None for other texts."""
    if text[:1] not in _CLOSING:
        return None
    s, pieces = Scanner(), list[str]()
    s.feed(text)
    s.ended = True
    steps = value(s, pieces.append)
    try:
        next(steps)
    except StopIteration as e:
        made = "".join(pieces)
        return made if e.value and s.at == len(text) and is_json(made) else None
    raise AssertionError("a reader waits though the text has ended")


def _quoted(s: Scanner, emit: Emit, quote: str) -> Steps[bool]:
    emit('"')
    found = yield from s.until((quote,), lambda t: emit(json.dumps(t, ensure_ascii=False)[1:-1]))
    if found:
        emit('"')
    return bool(found)


def _string(s: Scanner, emit: Emit, quote: str, *, argument: bool) -> Steps[bool]:
    s.at += 1
    emit('"')
    plain = re.compile(rf"[^\\{quote}]+")
    while True:
        char = yield from s.next()
        if not char:
            return False
        if char == quote:
            s.at += 1
            inner: list[str] = []
            yield from s.attempt(_goes_on(s, inner, quote, argument=argument))
            if not inner:
                emit('"')
                return True
            text = quote
        elif char == "\\":
            s.at += 1
            text = yield from _escaped(s)
        else:
            match = plain.match(s.text, s.at)
            assert match
            text = match[0]
            s.at = match.end()
        emit(json.dumps(text, ensure_ascii=False)[1:-1])


def _goes_on(s: Scanner, inner: list[str], quote: str, *, argument: bool) -> Steps[bool]:
    """Read the rest of a string if a quote does not end it; otherwise read nothing.

    Models do not escape quotes inside of strings: command='sed -n '1,9p' a.py'. A quote ends a
    string if a comma or a closing bracket of the surrounding values follows.
    """
    char = yield from s.space()
    ends = char == "" or char in ",)]}:"
    if argument and char in (",", ")"):
        s.at += 1
        after = yield from s.next()
        ends = after == "" or after not in ")\"'"
        if char == ",":
            after = yield from s.space()
            word = yield from s.match(_WORD)
            ends = after in ("", ")") or (word != "" and (yield from s.space()) in ("", "="))
    inner += [] if ends else [quote]
    return False


def _escaped(s: Scanner) -> Steps[str]:
    """Decode a backslash escape; an unknown escape stays unchanged."""
    char = yield from s.next()
    s.at += len(char)
    size = {"x": 2, "u": 4, "U": 8}.get(char, 0)
    if not size:
        return _ESCAPES.get(char, char if char in "\\'\"" else "\\" + char)
    digits = yield from s.match(re.compile(rf"[0-9a-fA-F]{{0,{size}}}"))
    try:
        return chr(int(digits, 16)).encode("utf-8", "replace").decode()
    except (ValueError, OverflowError):
        return f"\\{char}{digits}"


def _items(s: Scanner, emit: Emit, quote: str, depth: int) -> Steps[bool]:
    """Read a list, tuple, set or dictionary."""
    keyed = s.text[s.at] == "{"  # True until an item without a key comes
    closing = _CLOSING[s.text[s.at]]
    s.at += 1
    emit("" if keyed else "[")
    first = True
    while True:
        char = yield from s.space()
        if not char:
            return False
        if char == closing:
            s.at += 1
            emit("{}" if keyed and first else "}" if keyed else "]")
            return True
        if char == "," and not first:
            s.at += 1
            continue
        before = s.place
        emit("" if first else ", ")
        if keyed:
            key = yield from _key(s, quote)
            char = yield from s.space()
            if first and key and s.place > before and char and char in ",}":
                keyed = first = False
                emit(f"[{key}")
                continue
            emit("{" if first else "")
            if key is None:
                return False
            emit(f"{key if key.startswith(chr(34)) else json.dumps(key, ensure_ascii=False)}: ")
            if char != ":":
                return False
            s.at += 1
        first = False
        if not (yield from value(s, emit, quote, depth + 1)):
            return False
        if s.place == before:  # no value begins with this character, so it is skipped
            s.at += 1


def _key(s: Scanner, quote: str) -> Steps[str | None]:
    """Read a key, or an item of a set; return None if the text ends inside of it."""
    pieces: list[str] = []
    whole = yield from value(s, pieces.append, quote, _MAX_DEPTH)
    return "".join(pieces) if whole else None
