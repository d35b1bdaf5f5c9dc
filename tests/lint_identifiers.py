"""Finds identifiers that say nothing: `python -m tests.lint_identifiers`, in `make lint`.

The parts of snake_case and CamelCase names are compared with `WORDS`; strings and comments are left
out.
"""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# A part of a name, or several that follow each other, and what to write.
WORDS = {
    "made": "result, built, created, or what it is",
    "found": "match, rows, hits, or what it is",
    "whole": "bidirectional, integer_part, complete, full, fused",
    "asked": "request, or whose request it is",
    "wanted": "spec, requested, required",
    "told": "warning, note",
    "ours": "parameter",
    "theirs": "checkpoint tensor, source",
    "talk": "chat tools",
    "speech": "tokenizer and template",
    "shelf": "response store",
    "held": "constrained, kept, or by whom",
    "dialect": "tool format",
    "vain": "wasted",
    "under way": "in_flight, running",
    "underway": "in_flight, running",
}
# Terms of the field that have such a word.
TERMS = ("held out", "small talk")
# Names as they are written.
NAMES = {"Word": "Rule, WeightRule"}
# Names that are not ours to choose, or are public and stay, with the reason; one that means
# something else elsewhere has its file before it.
ALLOWED: dict[str, str] = {
    "FileNotFoundError": "Python",
    "ModuleNotFoundError": "Python",
    "NotFoundError": "openai and anthropic",
    "EntryNotFoundError": "huggingface_hub",
    "RepositoryNotFoundError": "huggingface_hub",
    "RevisionNotFoundError": "huggingface_hub",
    "connection_made": "asyncio",
    "vain_rows": "CoreStats, the deprecated name of wasted_rows",
    "WHERRY_NOT_FOUND": "engine/include/wherry.h, a status",
    "NOT_FOUND": "the same status in Python and Kotlin",
    "notFound": "the same status, an error of the Swift package",
    "ModelNotFoundException": "the same status, an error of the Kotlin library",
    "kDeviceNotFound": "OpenCL",
    "kPlatformNotFound": "OpenCL",
    "ERROR_FILE_NOT_FOUND": "Windows",
    "ERROR_PATH_NOT_FOUND": "Windows",
    "VK_WHOLE_SIZE": "Vulkan",
    "whole_rows": "engine/include/wherry.h, a field of the statistics",
    "wholeRows": "EngineStats of the npm package, the same field",
    "web/demo/session.ts: held": "Web Locks",
    "web/test/fetch.test.ts: speech": "OpenAI, a path in a regular expression",
}
C_LIKE = {".cc", ".h", ".cuh", ".ts", ".js", ".mjs", ".kt", ".java", ".swift"}
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# What holds no names comes first, so that its contents are not read; a name is the group.
C_LIKE_TOKEN = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/
    | R"(?P<mark>[^(\s"]*)\(.*?\)(?P=mark)" | \"{3}.*?\"{3}
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`
    | \d[\w'.]*
    | (?P<name>[A-Za-z_$][\w$]*)
    """,
    re.DOTALL | re.VERBOSE,
)


def python_names(text: str) -> Iterator[tuple[int, str]]:
    """The names in a Python file, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def c_like_names(text: str) -> Iterator[tuple[int, str]]:
    """The names in a C++, TypeScript, Kotlin, Java or Swift file, each with its line."""
    line, counted = 1, 0
    for token in C_LIKE_TOKEN.finditer(text):
        line += text.count("\n", counted, token.start())
        counted = token.start()
        if token["name"]:
            yield line, token["name"]


@functools.cache
def advice(name: str) -> str | None:
    """What to write instead of a part of the name; None if the name may stay."""
    if name in ALLOWED:
        return None
    parts = f" {' '.join(PART.findall(name)).lower()} "
    for term in TERMS:
        parts = parts.replace(f" {term} ", " ")
    fitting = (instead for word, instead in WORDS.items() if f" {word} " in parts)
    return NAMES.get(name) or next(fitting, None)


def problems(file: str) -> Iterator[str]:
    """The file's identifiers that say nothing, one line each."""
    text = (ROOT / file).read_text()
    names = python_names(text) if file.endswith(".py") else c_like_names(text)
    for line, name in names:
        if f"{file}: {name}" not in ALLOWED and (instead := advice(name)):
            yield f"{file}:{line}: {name}: write {instead}"


def main() -> int:
    """Print the identifiers; return 1 if there are any."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = [
        file
        for file in listed
        if Path(file).suffix in {".py", *C_LIKE}
        and (ROOT / file).is_file()
        and not (ROOT / file).is_symlink()
    ]
    lines = [line for file in files for line in problems(file)]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
