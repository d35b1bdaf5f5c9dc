"""Tables of characters, as Python's texts know them, for templates that run without Python.

    python app/value/make_characters.py > app/value/character_tables.h

Ranges of code points: which are letters, numbers, or not printable; and what their case changes to.
A range of case is (first, last, difference, step): of a step of 2 every other code point is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

SURROGATES = range(0xD800, 0xE000)
ALL = [c for c in range(sys.maxunicode + 1) if c not in SURROGATES]


def ranges(holds: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Code points of which it holds, as (first, last)."""
    start = None
    for code in [*range(sys.maxunicode + 1), None]:
        yes = code is not None and code not in SURROGATES and holds(chr(code))
        if yes and start is None:
            start = code
        elif not yes and start is not None:
            yield start, (sys.maxunicode + 1 if code is None else code) - 1
            start = None


def shifts(change: Callable[[str], str]) -> Iterator[tuple[int, int, int, int]]:
    """Single characters that become single characters."""
    found = {c: ord(change(chr(c))) - c for c in ALL if len(change(chr(c))) == 1}
    codes = [c for c, by in found.items() if by]
    i = 0
    while i < len(codes):
        first = codes[i]
        step = 1 if found.get(first + 1) == found[first] else 2
        last = first
        while found.get(last + step) == found[first] and (step == 1 or not found.get(last + 1)):
            last += step
        yield first, last, found[first], step
        while i < len(codes) and codes[i] <= last:
            i += 1


def expansions(change: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    """Single characters that become several."""
    for code in ALL:
        if len(change(chr(code))) > 1:
            yield code, change(chr(code))


def table(kind: str, name: str, rows: Iterator[str]) -> str:
    """A C++ array."""
    return f"constexpr {kind} {name}[] = {{{', '.join(rows)}}};"


def quoted(text: str) -> str:
    """UTF-8 as a C++ literal."""
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


def page() -> str:
    """The content of character_tables.h."""
    made = ["// Made by make_characters.py.", "// clang-format off"]
    for name, holds in (
        ("kAlpha", str.isalpha),
        ("kDecimal", str.isdecimal),
        ("kDigit", str.isdigit),
        ("kNumeric", str.isnumeric),
        ("kUpper", str.isupper),
        ("kLower", str.islower),
        ("kTitle", lambda c: c.istitle() and not c.isupper()),
        ("kHidden", lambda c: not c.isprintable()),
    ):
        made.append(table("Span", name, (f"{{{a}, {b}}}" for a, b in ranges(holds))))
    for name, change in (
        ("Upper", str.upper),
        ("Lower", str.lower),
        ("Title", str.title),
        ("Fold", str.casefold),
    ):
        rows = (f"{{{a}, {b}, {by}, {step}}}" for a, b, by, step in shifts(change))
        made.append(table("Shift", f"kTo{name}", rows))
        more = (f"{{{code}, {quoted(text)}}}" for code, text in expansions(change))
        made.append(table("Expansion", f"kMore{name}", more))
    return "\n".join(made) + "\n"


if __name__ == "__main__":
    print(page(), end="")
