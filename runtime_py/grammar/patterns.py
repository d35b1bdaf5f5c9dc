r"""Converts regular expressions from JSON Schema's dialect (ECMA-262) to the grammars' (Rust).

The dialects agree in most of what schemas contain. Differences are rewritten so that the output is
valid in every reader's dialect (ECMA-262, Python's `re` and Go's `regexp` differ in \s and \W), or
refused. The compiler itself refuses what Rust lacks: look-around and back references.
"""

from __future__ import annotations

# The line terminators of ECMA-262, which its `.` excludes; Rust's `.` excludes only \n.
_DOT = r"[^\n\r\u2028\u2029]"
_ANY = r"(?s:.)"
_ANY_CLASSES = (r"[\s\S]", r"[\S\s]", r"[\d\D]", r"[\D\d]", r"[\w\W]", r"[\W\w]", "[^]")
# Characters that `\s` matches in every dialect, then those that it matches only in some.
_SPACE = r"\t\n\x0b\x0c\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SOME_SPACE = _SPACE + r"\x1c-\x1f\u0085\ufeff"
_OPERATORS = ("&&", "--", "~~")  # set operators in character classes, which only Rust has
_CLASSES = {
    "s": f"[{_SPACE}]",
    "S": f"[^{_SOME_SPACE}]",
    "d": "[0-9]",
    "D": r"[^\p{Nd}]",
    "w": "[0-9A-Za-z_]",
    "W": r"[^\p{L}\p{M}\p{N}\p{Pc}]",
}
_IN_CLASS = {"s": _SPACE, "d": "0-9", "D": r"\P{Nd}", "w": "0-9A-Za-z_", "b": r"\x08"}


def from_ecma(pattern: str) -> str:
    r"""Convert a regular expression so that ECMA-262 matches everything that the result matches.

    Raises:
        ValueError: the dialects differ here; the message names the part.
    """
    out: list[str] = []
    at, in_class = 0, False
    while at < len(pattern):
        char, pair = pattern[at], pattern[at : at + 2]
        anything = next((c for c in _ANY_CLASSES if pattern.startswith(c, at)), None)
        if anything and not in_class:
            out.append(_ANY)
            at += len(anything)
            continue
        if char == "\\":
            out.append(_escape(pair, in_class))
            at += 2
            continue
        if in_class:
            _check_in_class(char, pair)
            in_class = char != "]"
        elif char == "[":
            in_class = True
            if pattern[at + 1 : at + 2] == "]":
                raise ValueError("an empty class, []")
        out.append(_DOT if char == "." and not in_class else char)
        at += 1
    return "".join(out)


def _escape(pair: str, in_class: bool) -> str:
    letter = pair[1:]
    if letter == "/":
        return "/"
    if in_class and letter in ("S", "W"):
        raise ValueError(f"{pair} inside a class")
    return (_IN_CLASS if in_class else _CLASSES).get(letter, pair)


def _check_in_class(char: str, pair: str) -> None:
    if char == "[":
        raise ValueError("an unescaped [ inside a class")
    if pair in _OPERATORS:
        raise ValueError(f"{pair} inside a class")


def literal(text: str) -> str:
    """Return an expression that matches exactly this text."""
    return "".join(c if c.isalnum() or c in " _" else f"\\x{{{ord(c):x}}}" for c in text)
