"""Builds a grammar in llguidance's dialect of Lark from expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..audit import prepared

ANY = r"/(.|\n)*/"  # free text, which never contains special tokens


def nested(grammar: str) -> str:
    """Return an expression for the texts of another grammar, whose rules stay its own."""
    return f"%lark {{\n{grammar}\n}}"


class Lark:
    """The rules of a grammar, and the expressions that they consist of.

    Args:
        special: returns the id of a special token by name, or None. Such a name matches only that
            token, never text.
    """

    def __init__(self, special: Callable[[str], int | None], names: tuple[str, ...] = ()) -> None:
        self._rules: list[str] = []
        ids = {name: special(name) for name in names}
        self._special = {name: i for name, i in ids.items() if i is not None}
        longest = sorted(self._special, key=len, reverse=True)
        self._split = re.compile("(" + "|".join(map(re.escape, longest)) + ")") if longest else None

    def text(self, literal: str) -> str:
        """Return an expression for exactly this text, in which special tokens match as tokens."""
        pieces = self._split.split(literal) if self._split else [literal]
        return " ".join(
            f"<[{self._special[p]}]>" if p in self._special else json.dumps(p, ensure_ascii=False)
            for p in pieces
            if p
        )

    def up_to(self, literal: str) -> str:
        """Return an expression for any text that ends with the first `literal`."""
        first = self._split.split(literal)[1:2] if self._split else []
        if first and literal.startswith(first[0]):
            return f"{self.rule(ANY, lexeme=True)} {self.text(literal)}"
        text = self.rule(ANY, lexeme=True)
        return self.rule(f"{text} {json.dumps(literal, ensure_ascii=False)}", lazy=True)

    def json(self, schema: Any, root: Mapping[str, Any]) -> str:
        """Return an expression for a JSON value of this schema, whose definitions are in `root`.

        Raises:
            SchemaProblems: the schema cannot be enforced.
        """
        definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
        if isinstance(schema, Mapping):
            schema = {**schema, **definitions}
        return f"%json {prepared(schema)}"

    def rule(self, expression: str, *, lexeme: bool = False, lazy: bool = False) -> str:
        """Add a rule for an expression, and return its name.

        A regular expression matches a lexeme.
        """
        name = f"{'WHERRY_' if lexeme else 'wherry_'}{len(self._rules)}"
        name += "[lazy]" if lazy else ""
        self._rules.append(f"{name}: {expression}\n")
        return name.removesuffix("[lazy]")

    def either(self, expressions: list[str]) -> str:
        """Return an expression that matches one of these."""
        return self.rule(" | ".join(f"({e})" for e in expressions))

    def made(self, start: str) -> str:
        """Return the text of the grammar whose whole output is the expression `start`."""
        return f"start: {start}\n" + "".join(self._rules)
