"""Reads what classes say of their fields: comments at a field's line or above, or a text below."""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from itertools import zip_longest


def comments_of(kind: type) -> dict[str, str]:
    """Field -> comment, for a class and its bases; "" where a field has none."""
    comments: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):  # a class without a file
            continue
        comments |= _of_source(source)
    return comments


def _of_source(source: str) -> dict[str, str]:
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    lines = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    own = {n for n, line in enumerate(source.splitlines(), 1) if line.strip().startswith("#")}
    comments = {}
    for node, after in zip_longest(body.body, body.body[1:]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = [lines[n] for n in range(node.lineno, node.end_lineno + 1) if n in lines]
            above = node.lineno - 1
            while above in own:
                said.insert(0, lines[above])
                above -= 1
            comments[node.target.id] = " ".join(said)
            if isinstance(after, ast.Expr):
                comments[node.target.id] = ast.literal_eval(after.value)
    return comments


def cell(text: str) -> str:
    """A text as a cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])
