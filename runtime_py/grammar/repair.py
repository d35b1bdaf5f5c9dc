"""Finds what can never be complete: parts of schemas that no value satisfies, and endless grammars.

C++ does it, for all runtimes alike: app/grammar/schema/repair.h and app/grammar/endless.h.
"""

from __future__ import annotations

import json
from typing import Any

from ..core.host_abi import answer_to, open_host


def repaired(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an equivalent schema without impossible parts, and those that cannot be left out.

    A schema that C++ cannot read, such as one with larger numbers, is returned as it is. A problem
    is a line, as "#/properties/a: why".
    """
    answer = answer_to("wherry_schema_repair", json.dumps(schema))
    if answer is None:
        return schema, []
    return answer["schema"], [_line(problem) for problem in answer["problems"]]


def _line(problem: str) -> str:
    place, colon, why = problem.partition(": ")
    return f"#/{place.replace('.', '/')}: {why}" if colon else f"#: {problem}"


def endless_rule(grammar: str) -> str:
    """Return the name of a grammar's first rule if no text of it ends, else "".

    Args:
        grammar: in GBNF, or in llguidance's dialect of Lark.
    """
    data = grammar.encode()
    answer: bytes | None = open_host().wherry_grammar_endless(data, len(data))
    return (answer or b"").decode()
