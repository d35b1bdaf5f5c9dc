"""The page of the libraries for apps, docs/mobile-api.md, from Kotlin's and Swift's sources.

python -m docs.reference.mobile_api > docs/mobile-api.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MOBILE = Path(__file__).parents[2] / "mobile"
_KOTLIN = tuple(
    _MOBILE / "android" / "src" / part / "kotlin" for part in ("main", "android", "work")
)
_SWIFT = (_MOBILE / "ios" / "Sources" / "Wherry",)
_HEAD = """\
# Libraries for apps

The public declarations of the libraries in Kotlin (Java reads the same) and Swift;
[Phones and boards](../mobile/README.md) says how they are used. `make docs` writes this page from
the sources, whose comments say more.
"""
_TYPE = re.compile(
    r"^(?:@\w+(?:\(.*?\))? +)*(?P<words>(?:[a-z]+(?:\([a-z]+\))? +)*?)"
    r"(?P<kind>class|interface|object|struct|enum|actor|protocol|extension)\b"
)
_PUBLIC = re.compile(r"^(?:@\w+(?:\(.*?\))? +)*public\b")
_HIDDEN = re.compile(r"\b(?:private|internal) va[lr] ")  # parameters that are no properties


@dataclass
class _Type:
    """A type or an extension; "" is the top of a file."""

    declared: str
    indent: int
    public: bool
    says: str = ""
    members: list[str] = field(default_factory=list)


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for language, folders in (("Kotlin", _KOTLIN), ("Swift", _SWIFT)):
        parts.append(f"\n## {language}\n")
        types = _merged(t for f in _sources(folders) for t in _read(f.read_text(encoding="utf-8")))
        parts += [_section(one, language.lower()) for one in types]
    return "".join(parts)


def _sources(folders: Sequence[Path]) -> list[Path]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sorted(path for path in files if path.suffix in (".kt", ".swift"))


def _merged(types: Iterable[_Type]) -> list[_Type]:
    """Return public types in the order of their names, functions outside of types first."""
    tops: dict[str, _Type] = {}
    for one in types:
        known = tops.setdefault(one.declared, one)
        if known is not one:
            known.members += one.members
    shown = [one for one in tops.values() if one.members or _shown_alone(one)]
    return sorted(shown, key=lambda one: _name(one.declared).lower())


def _shown_alone(one: _Type) -> bool:
    """Whether a type without members is shown: an extension has only conformances then."""
    return one.public and one.declared != "" and "extension " not in one.declared


def _name(declared: str) -> str:
    kinds = "class|interface|object|struct|enum|actor|protocol|extension"
    match = re.search(rf"\b(?:{kinds}) +([\w.]+)", re.sub(r"\benum class\b", "class", declared))
    return match[1] if match else ""


def _section(one: _Type, language: str) -> str:
    title = f"### {_name(one.declared)}" if one.declared else "### Functions"
    if "extension " in one.declared:
        title = f"### Extension of {_name(one.declared)}"
    lines = [one.declared] if one.declared else []
    lines += [f"{'    ' if one.declared else ''}{member}" for member in one.members]
    says = f"{one.says}\n\n" if one.says else ""
    return f"\n{title}\n\n{says}```{language}\n" + "".join(f"{line}\n" for line in lines) + "```\n"


def _read(text: str) -> Iterator[_Type]:
    """Yield a file's types, with their public members."""
    lines = text.splitlines()
    stack = [_Type("", -1, True)]
    types = list(stack)
    end = 0  # of the last declaration
    for i, line in enumerate(lines):
        stripped = line.strip()
        if i < end:
            continue
        indent = len(line) - len(line.lstrip())
        if not stripped or stripped[0] in "/*}#)":
            continue
        match, public = _TYPE.match(stripped), bool(_PUBLIC.match(stripped))
        in_case = stripped.startswith("case ") and "enum " in stack[-1].declared
        if not (match or public or in_case):
            continue
        while stack[-1].indent >= indent:
            stack.pop()
        outer = stack[-1]
        visible = outer.public and (public or (match is not None and match["kind"] == "extension"))
        declared, count = _declaration(lines[i:])
        end = i + count
        if match:
            one = _Type(_full(declared, outer), indent, visible, _says(lines[:i]))
            if declared.endswith("companion object"):  # its members are called by the type's name
                one.declared, one.members = outer.declared, outer.members
            elif visible:
                types.append(one)
            stack.append(one)
        elif declared.startswith("func urlSession"):
            continue  # of a protocol, for the system
        elif visible or (in_case and outer.public):
            outer.members.append(declared)
    yield from types


def _full(declared: str, outer: _Type) -> str:
    """Return a declaration with the name of the type around it: "class Tool.Call"."""
    name, around = _name(declared), _name(outer.declared)
    if not name or not around:
        return declared
    return re.sub(rf"\b{name}\b", f"{around}.{name}", declared, count=1)


def _declaration(lines: Sequence[str]) -> tuple[str, int]:
    """Return a declaration without its body, on one line, and the number of its lines."""
    text, depth, count = "", 0, 0
    for line in lines:
        count += 1
        text += (" " if text else "") + line.strip()
        depth = sum(text.count(c) for c in "([") - sum(text.count(c) for c in ")]")
        if depth <= 0:
            break
    text = re.sub(r"\s*//.*$", "", text)
    cut = _cut(text)
    cut = re.sub(r"\(\s+", "(", re.sub(r",?\s+\)", ")", cut))
    return _HIDDEN.sub("", re.sub(r"\bpublic +", "", cut)).strip(), count


def _cut(text: str) -> str:
    """Return a declaration up to its body: a brace, an expression or a getter."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and (
            c == "{" or text.startswith((" = ", " get()"), i) or (c == "=" and i == len(text) - 1)
        ):
            return text[:i]
    return text


def _says(before: Sequence[str]) -> str:
    """Return the first paragraph of the comment that the lines end with."""
    lines: list[str] = []
    for line in reversed(before):
        stripped = line.strip()
        if stripped.startswith("@") and not lines:
            continue
        if not stripped.startswith(("///", "/**", "*")):
            break
        lines.insert(0, re.sub(r"^(///|/\*\*|\*/|\*)\s?|\s*\*/$", "", stripped).strip())
        if stripped.startswith("/**"):
            break
    text = "\n".join(lines).strip().split("\n\n")[0].split("\n@")[0].replace("\n", " ")
    return re.sub(r"\[([\w.]+)\]", r"`\1`", text)


if __name__ == "__main__":
    print(page(), end="")
