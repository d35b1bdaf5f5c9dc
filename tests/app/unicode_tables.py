"""Writes app/value/unicode/tables.cc: characters as `tokenizers` and Python see them.

    python -m tests.app.unicode_tables > app/value/unicode/tables.cc

The library is the reference, and its parts have different versions of Unicode: categories in
patterns are 16.0, lower case 17.0, normal forms 11.0, marks and punctuation older still. So each
table is what the library answers for every code point; `regex` says where graphemes break, and
this Python the order of combining marks and what methods of str answer (of characters that are
younger than its Unicode: what others of their category or case answer).

A set is a choice of categories and its exceptions; a mapping may be the exceptions of another.
"""

from __future__ import annotations

import base64
import functools
import itertools
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import regex
from tokenizers import Regex, normalizers, pre_tokenizers

_LAST = 0x110000
_CODES = [*range(0xD800), *range(0xE000, _LAST)]
CATEGORIES = (
    "Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs"
).split()
BREAKS = "Other CR LF Control Extend ZWJ RI Prepend SpacingMark L V T LV LVT".split()
_CHUNK = 4096


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _zigzag(value: int) -> bytes:
    return _varint(value * 2 if value >= 0 else -value * 2 - 1)


def _runs(of: list[int]) -> bytes:
    """Length and value of each run, over all code points."""
    return b"".join(
        _varint(len(list(group))) + _varint(value) for value, group in itertools.groupby(of)
    )


def _chunks() -> Iterator[str]:
    for at in range(0, len(_CODES), _CHUNK):
        yield "".join(map(chr, _CODES[at : at + _CHUNK]))


def matched(pattern: str) -> set[int]:
    """Code points that a pattern of one character takes."""
    split = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), behavior="removed", invert=True)
    return {
        ord(c) for chunk in _chunks() for piece, _ in split.pre_tokenize_str(chunk) for c in piece
    }


def _removed(normalize: Callable[[str], str]) -> set[int]:
    """Code points that a normalizer takes away."""
    return {c for c in _CODES if c and normalize(f"a{chr(c)}b") == "ab"}


def _set(members: set[int]) -> bytes:
    """The categories that mostly belong to it, a bit each; lengths of the runs of code points of
    which this is true and of those of which it is false, in turn."""
    all_codes, inside = Counter(categories()), Counter(categories()[c] for c in members)
    chosen = {kind for kind, count in inside.items() if 2 * count > all_codes[kind]}
    wrong = [(c in members) != (kind in chosen) for c, kind in enumerate(categories())]
    out = _varint(sum(1 << kind for kind in chosen)) + (_varint(0) if wrong[0] else b"")
    return out + b"".join(_varint(len(list(group))) for _, group in itertools.groupby(wrong))


def _of_str(holds: Callable[[str], bool]) -> bytes:
    """Characters of which a method of Python's str holds."""
    kinds, assigned = categories(), [unicodedata.category(chr(c)) != "Cn" for c in range(_LAST)]
    known = [c for c in _CODES if assigned[c] or CATEGORIES[kinds[c]] == "Cn"]
    members = {c for c in known if holds(chr(c))}
    every, inside = Counter(kinds[c] for c in known), Counter(kinds[c] for c in members)
    young = set(_CODES) - set(known)
    return _set(members | {c for c in young if 2 * inside[kinds[c]] > every[kinds[c]]})


@functools.cache
def categories() -> list[int]:
    numbers = [0] * _LAST
    for number, name in enumerate(CATEGORIES):
        if name in ("Cn", "Cs"):
            continue
        for code in matched(rf"\p{{{name}}}"):
            numbers[code] = number
    for code in range(0xD800, 0xE000):
        numbers[code] = CATEGORIES.index("Cs")
    return numbers


def _words() -> set[int]:
    r"""\w of Rust's regex: `Whitespace` keeps words and what is neither word nor space apart."""
    split = pre_tokenizers.Whitespace()
    codes = set()
    for code in _CODES:  # joined with a letter only if it is of a word itself
        pieces = split.pre_tokenize_str("a" + chr(code))
        if pieces[0][0] != "a":
            codes.add(code)
    return codes


def _isolated(split: pre_tokenizers.PreTokenizer) -> set[int]:
    codes = set()
    for chunk in _chunks():
        for c in chunk:
            if len(split.pre_tokenize_str("a" + c)) > 1:
                codes.add(ord(c))
    return codes


def _mappings(of: Callable[[str], str], otherwise: Callable[[str], str] = str) -> bytes:
    """Where it is not as `otherwise` says: gap, length, run; then the targets: of runs (consecutive
    targets) the first, else all."""
    changed = {
        c: t for c in _CODES if (t := of(chr(c))) != otherwise(chr(c)) and not 0xAC00 <= c < 0xD7A4
    }
    out, before, target = bytearray(), 0, 0
    codes = iter(sorted(changed))
    code = next(codes, None)
    while code is not None:
        to, run = changed[code], 1
        following = next(codes, None)
        while len(to) == 1 and following == code + run and changed[following] == chr(ord(to) + run):
            run, following = run + 1, next(codes, None)
        out += _varint(code - before)
        # One number for both: most are runs of one, or of one target.
        out += _varint(2 * len(to) + 1) if run == 1 else _varint(2 * run)
        for c in to:
            out += _zigzag(ord(c) - target)
            target = ord(c)
        before, code = code + run, following
    return bytes(out)


def _combining() -> list[int]:
    """Classes as the library has them: 0 for what is younger than its tables."""
    nfd = normalizers.NFD().normalize_str
    kinds = [0] * _LAST
    for code in _CODES:
        kind = unicodedata.combining(chr(code))
        # Behind a mark of class 240 it moves to the front, unless it has that class itself.
        if kind == 240 or (kind and not nfd("a\u0345" + chr(code)).endswith(chr(code))):
            kinds[code] = kind
    return kinds


def _composed() -> set[int]:
    nfc, nfd = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
    return {
        c
        for c in _CODES
        if not 0xAC00 <= c < 0xD7A4 and len(d := nfd(chr(c))) > 1 and nfc(d) == chr(c)
    }


def _breaks() -> list[int]:
    kinds = [0] * _LAST
    for number, name in enumerate(BREAKS):
        if name in ("Other", "LV", "LVT"):
            continue
        pattern = regex.compile(rf"\p{{GCB={name}}}")
        for chunk in _chunks():
            for match in pattern.finditer(chunk):
                kinds[ord(match[0])] = number
    return kinds


def _lines(name: str, comment: str, data: bytes) -> Iterator[str]:
    yield f"// {comment}"
    rows = textwrap.wrap(base64.b64encode(data).decode(), 92)
    if len(line := f'const char {name}[] = "{rows[0]}";') <= 100 and len(rows) == 1:
        yield line
        return
    yield f"const char {name}[] ="
    for row in rows[:-1]:
        yield f'    "{row}"'
    yield f'    "{rows[-1]}";'


def tables() -> Iterable[tuple[str, str, bytes]]:
    """Name, comment and content of each table."""
    bert = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    ).normalize_str
    nonspacing = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
    ).normalize_str
    canonical, compatible = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    lower = normalizers.Lowercase().normalize_str

    def folded(c: str) -> str:
        return lower(c) if unicodedata.category(c) == "Cn" else c.casefold()

    yield "kCategories", "runs: length, Category", _runs(categories())
    yield "kWords", r"set: \w of added tokens and of Whitespace", _set(_words())
    yield "kPatternWords", r"set: \w of patterns", _set(matched(r"\w"))
    yield "kSpaces", "set: White_Space", _set(matched(r"\s"))
    yield "kPunctuation", "set: of Punctuation", _set(_isolated(pre_tokenizers.Punctuation()))
    yield "kNumeric", "set: of Digits", _set(_isolated(pre_tokenizers.Digits()))
    yield (
        "kMarks",
        "set: what StripAccents takes",
        _set(_removed(normalizers.StripAccents().normalize_str)),
    )
    yield "kNonspacing", "set: accents of BertNormalizer", _set(_removed(nonspacing))
    yield "kControl", "set: what BertNormalizer's clean_text takes", _set({0} | _removed(bert))
    yield "kLower", "mappings", _mappings(lower)
    yield "kUpper", "mappings: str.upper", _mappings(str.upper)
    yield "kTitle", "mappings, where not as kUpper: str.title", _mappings(str.title, str.upper)
    yield "kFold", "mappings, where not as kLower: str.casefold", _mappings(folded, lower)
    yield "kIsAlpha", "set: str.isalpha", _of_str(str.isalpha)
    yield "kIsDecimal", "set: str.isdecimal", _of_str(str.isdecimal)
    yield "kIsDigit", "set: str.isdigit", _of_str(str.isdigit)
    yield "kIsNumeric", "set: str.isnumeric", _of_str(str.isnumeric)
    yield "kIsUpper", "set: str.isupper", _of_str(str.isupper)
    yield "kIsLower", "set: str.islower", _of_str(str.islower)
    yield (
        "kIsTitle",
        "set: str.istitle, but not str.isupper",
        _of_str(lambda c: c.istitle() and not c.isupper()),
    )
    yield "kIsHidden", "set: not str.isprintable", _of_str(lambda c: not c.isprintable())
    yield "kCanonical", "mappings, full", _mappings(canonical)
    yield "kCompatible", "mappings, full, where not canonical", _mappings(compatible, canonical)
    yield "kComposed", "set: what its canonical mapping composes to", _set(_composed())
    yield "kCombining", "runs: length, canonical combining class", _runs(_combining())
    yield "kBreaks", "runs: length, Break", _runs(_breaks())


def page() -> str:
    """The content of tables.cc."""
    lines = [
        "// Written by `python -m tests.app.unicode_tables`, which says what is in it; base64.",
        f"// Patterns and lower case: Unicode 16 and 17; graphemes: as regex {regex.__version__}.",
        '#include "app/value/unicode/tables.h"',
        "",
        "namespace wherry::unicode::tables {",
        "",
    ]
    for table in tables():
        lines += [*_lines(*table), ""]
        print(f"{table[0]}: {len(table[2])} bytes", file=sys.stderr)
    return "\n".join([*lines, "}  // namespace wherry::unicode::tables", ""])


if __name__ == "__main__":
    print(page(), end="")
