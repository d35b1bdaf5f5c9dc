r"""Regular expressions: from the dialect of JSON Schema (ECMA-262) to that of the grammars.

The grammars read Rust's. The two agree in most of what schemas contain. What they read differently
is rewritten so that what is written is valid wherever it is read (validators use ECMA-262, Python's
`re`, Go's `regexp`: their \s and \W differ), or refused. What Rust's has not (look-around, back
references) the compiler refuses by itself.
"""

from __future__ import annotations

# ECMA-262's line terminators, which `.` does not match; Rust's `.` excludes the first alone.
_DOT = r"[^\n\r\u2028\u2029]"
_ANY = r"(?s:.)"
_ANY_CLASSES = (r"[\s\S]", r"[\S\s]", r"[\d\D]", r"[\D\d]", r"[\w\W]", r"[\W\w]", "[^]")
# White space in every dialect; in some of them.
_SPACE = r"\t\n\x0b\x0c\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SOME_SPACE = _SPACE + r"\x1c-\x1f\u0085\ufeff"
_OPERATORS = ("&&", "--", "~~")  # of sets, inside classes: Rust's only
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
    r"""The same expression in the grammar's dialect; what it matches, ECMA-262's matches too.

    Raises:
        ValueError: something that the two dialects read differently; the message names it.
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
    """An expression that matches this text alone."""
    return "".join(c if c.isalnum() or c in " _" else f"\\x{{{ord(c):x}}}" for c in text)
