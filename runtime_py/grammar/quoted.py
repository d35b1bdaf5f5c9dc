r"""Rewrites a Lark grammar so that it matches texts in the form that they have in a JSON string.

JSON escapes a text character by character, so each terminal can be rewritten alone: a literal is
escaped, and in a regular expression everything that matches one character also matches its escape.
Each character has one form here: itself, or the escape that `json.dumps` writes.
"""

from __future__ import annotations

import json
import re

# The characters that a JSON string contains only in escaped form.
_ESCAPED = [chr(i) for i in range(0x20)] + ['"', "\\"]
_PLAIN = r'[^"\\\x00-\x1f]'  # all others, as a class
_TOKENS = re.compile(
    r'(?P<text>"(?:[^"\\\n]|\\.)*"i?)|(?P<regex>/(?:[^/\\\n]|\\.)+/[a-z]*)'
    r"|(?P<comment>(?:#|//)[^\n]*)|%import\s+common(?P<imports>[^\n]*)"
    r"|(?P<other>%(?!ignore)\w+|<\[|[&~])"
)
# Terminals of Lark's library that contain escaped characters.
_COMMON = {
    "CR": r"/\r/",
    "LF": r"/\n/",
    "NEWLINE": r"/(\r?\n)+/",
    "WS": r"/[ \t\f\r\n]+/",
    "WS_INLINE": r"/[ \t]+/",
    "ESCAPED_STRING": r'/"(?:[^"\\\n]|\\.)*"/',
    "SH_COMMENT": r"/#[^\n]*/",
    "CPP_COMMENT": r"/\/\/[^\n]*/",
}
# One character or one class of characters of a regular expression, or anything else of it.
_ATOMS = re.compile(
    r"(?P<class>\[\^?\]?(?:[^\]\\]|\\.)*\])|(?P<unicode>\\[pP](?:\{\w+\}|\w))"
    r"|(?P<set>\\[dDwWsS]|\.)"
    r"|(?P<code>\\x\{[0-9a-fA-F]+\}|\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F]+\}|\\u[0-9a-fA-F]{4})"
    r"|(?P<letter>\\[nrtfv0a])|(?P<anchor>\\[bBAzZ]|\^|\$)|(?P<escape>\\.)"
    r"|(?P<group>\(\?(?:[imsx-]*[:)]|P?<\w+>)|\()|(?P<repeat>\{\d*,?\d*\}|[*+?|)])|(?P<char>.)",
    re.DOTALL,
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}
_CODES = re.compile(r"\\[xu]\{([0-9a-fA-F]{1,6})\}")  # which Python's dialect lacks
_WITHOUT = re.compile(r"\\p(?:\{(?:L|M|N)\w*\}|[LMN])")  # properties of no escaped character


def quoted(lark: str) -> str:
    """Return the grammar of the escaped forms of the texts that a Lark grammar matches.

    Raises:
        ValueError: something in the grammar has no such form; the message names it.
    """
    return _TOKENS.sub(_token, lark)


def _token(match: re.Match[str]) -> str:
    kind = match.lastgroup
    text = match.group()
    if kind == "text":
        return _literal(text)
    if kind == "regex":
        body, _, flags = text[1:].rpartition("/")
        return f"/{_expression(body, flags)}/{flags}"
    if kind == "imports":
        return "\n".join(map(_import, re.findall(r"\w+", match["imports"])))
    if kind == "other":
        raise ValueError(f"{text} inside of a JSON string")
    return ""  # comments


def _import(name: str) -> str:
    known = _COMMON.get(name)
    return f"{name}: {_TOKENS.sub(_token, known)}" if known else f"%import common.{name}"


def _literal(text: str) -> str:
    flag = "i" if text.endswith("i") else ""
    plain = json.loads(text.removesuffix("i"), strict=False)
    escaped = _escape(plain)
    if flag and escaped != plain:
        raise ValueError(f"{text}: escaped characters without case")
    return json.dumps(escaped, ensure_ascii=False) + flag


def _escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _expression(body: str, flags: str) -> str:
    scopes = ["s" in flags]  # whether a dot matches a line break, in each open group
    pieces = []
    for match in _ATOMS.finditer(body):
        kind, text = match.lastgroup, match.group()
        if kind == "anchor" and not _redundant(match):
            raise ValueError(f"{text} in /{body}/ inside of a JSON string")
        if kind == "group":
            dots = scopes[-1] or ("<" not in text and "s" in text.partition("-")[0])
            scopes[-1:] = [dots] if text.endswith(")") else [scopes[-1], dots]
        elif text == ")" and kind == "repeat" and len(scopes) > 1:
            scopes.pop()
        pieces.append("" if kind == "anchor" else _atom(kind, text, every=scopes[-1]))
    return "".join(pieces)


def _redundant(match: re.Match[str]) -> bool:
    """Tell whether an anchor is at the end of the expression to which it binds."""
    text = match.group()
    return (text == "^" and match.start() == 0) or (
        text == "$" and match.end() == len(match.string)
    )


def _atom(kind: str | None, text: str, *, every: bool) -> str:
    if kind in ("group", "repeat"):
        return text
    if kind == "code":
        return _char(chr(int(text[2:].strip("{}"), 16)), text)
    if kind == "letter":
        return _char(_LETTERS[text[1]], text)
    if kind in ("escape", "char"):
        return _char(text[-1], text)
    if kind == "set" and text == ".":
        text = r"[\x00-\U0010ffff]" if every else r"[^\n]"
        return _class(text, r"[\s\S]" if every else text)
    return _class(text if kind == "class" else f"[{text}]", text)


def _char(char: str, written: str) -> str:
    return f"(?-i:{re.escape(_escape(char))})" if char in _ESCAPED else written


def _class(text: str, written: str) -> str:
    r"""Return the expression of a class: its other characters, or the escapes of these.

    Args:
        text: the class in brackets.
        written: the same as Rust's dialect has it.
    """
    bare = _CODES.sub(lambda m: f"\\U{int(m[1], 16):08x}", _WITHOUT.sub("", text))
    bare = bare.replace(r"\s", r" \t\n\r\f\v")
    if "[" in re.sub(r"\\.", "", bare[1:]):
        raise ValueError(f"a class inside of the class {text}")
    try:
        known = re.compile(bare.replace("[]", r"[^\s\S]").replace("[^]", r"[\s\S]"))
    except re.error as e:
        raise ValueError(f"the class {text}: {e}") from e
    escapes = [re.escape(_escape(c)) for c in _ESCAPED if known.fullmatch(c)]
    inner = written if written.startswith("[") else f"[{written}]"
    plain = [f"[{inner}&&{_PLAIN}]"]
    return f"(?:{'|'.join([*plain, *escapes])})" if escapes else inner
