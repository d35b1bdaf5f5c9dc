"""Finds words of our own where the field has a term: `python -m tests.lint_words`, in `make lint`.

Each row is a pattern and what to write. A word stands for its own meaning in quotations, so the
files in `APART` are left out; docs/glossary.md has the field's words.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
KINDS = {
    ".py",
    ".cc",
    ".h",
    ".cuh",
    ".ts",
    ".js",
    ".mjs",
    ".kt",
    ".java",
    ".swift",
    ".md",
    ".cmake",
}
# `PLAIN` holds everywhere but in tests.
TESTS = ("tests/", "web/test/", "mobile/ios/Tests/")
# What programs print, or tell a model, is compared by tests and stays: `PLAIN` leaves it out.
LITERAL = re.compile(r'"[^"\n]*"|`[^`\n]*`')
LITERAL_KINDS = {".cc", ".h", ".cuh", ".ts", ".js", ".mjs"}
APART = (
    "CHANGELOG.md",
    "docs/cli.md",
    "examples/",
    "src/wherry/demo/",
    "tests/lint_words.py",
    "web/test/data/",
)
WORDS = {
    r"(?<!\ba )\bfew[_ ]rows\b": "GEMV, small batch",
    r"(?<!\b(?:as|so) )\b(?<!\bhow )many[_ ]rows\b": "GEMM, large batch",
    r"\bload_again\b": "load_volatile",
    r"lane_beside": "shuffle",
    r"\b(the|bits|and) opened weights\b|\bopened (bits|weights)\b": "dequantized",
    r"\b(first|second) cache\b": "L1, L2",
    r"\bguess(es|ing)? (ahead|further)\b|\bright_guess|\bguesses (ahead|of)\b": "draft tokens",
    r"\bgues(s|ses|sed|ser) tokens?\b": "draft tokens",
    r"\b(is|are|was|were) put back\b": "preempted",
    r"\bin vain\b|\bvain rows?\b": "wasted",
    r"\bstrangers?\b": "untrusted input, untrusted client",
    r"manieth": "every Nth",
    r"\blik(e|eli)est\b": "most likely, longest match",
    r"\b(is|are) had\b": "exists, is available",
    r"\banswers? in numbers\b": "embeddings, scores, rankings",
    r"\bwhat may come\b": "grammar mask, logits, candidates",
    r"\basked for as one command\b": "CUDA graph capture and replay",
    r"\bgets? on\b": "advances",
    r"\bbelieved\b": "accepted",
}
PLAIN = {
    r"\b(no|any|some)body\b(?! = |\))": "no process, no request, a client: who it is",
    r"\bwhoever\b": "the caller, the client: who it is",
    r"\bbeside\b": "next to, besides, with, compared with",
    r"\bwho (waits|has|asks|wants|holds)\b": "a waiting request, the client, the owner",
    r"\bunder way\b": "running",
    r"\b(goes|going) on\b": "continue, resume",
    r"\bso many\b": "the number",
    r"\bturn(ed)? round\b": "negated, inverted",
    r"\btold of\b|\btells of\b": "describes, reports",
}


def blank(literal: re.Match[str]) -> str:
    """Spaces of the literal's length, so that places stay."""
    return " " * len(literal[0])


def problems_of(path: Path) -> list[str]:
    """The lines of a file that have one of the words, with what to write."""
    name = str(path.relative_to(ROOT))
    text = path.read_text(errors="replace")
    comments = LITERAL.sub(blank, text) if path.suffix in LITERAL_KINDS else text
    checks = [(WORDS, text)] if name.startswith(TESTS) else [(WORDS, text), (PLAIN, comments)]
    lines = []
    for words, checked in checks:
        for pattern, instead in words.items():
            for match in re.finditer(pattern, checked, re.IGNORECASE):
                number = checked.count("\n", 0, match.start()) + 1
                lines.append(f'{name}:{number}: "{match[0]}": write {instead}')
    return lines


def main() -> int:
    """Print what is found; 1 if anything is."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = [ROOT / name for name in listed if not name.startswith(APART)]
    problems = [
        line
        for file in files
        if file.suffix in KINDS and file.is_file() and not file.is_symlink()
        for line in problems_of(file)
    ]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
