"""Structural tags: free text until a trigger, then a tag that follows a schema.

The format is vLLM's: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}. A tag's
`begin` starts with one of the triggers. It becomes a grammar in llguidance's dialect of Lark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .audit import SchemaProblems, prepared


def structural_tag(value: Any, is_special: Callable[[str], bool]) -> str:
    """Return the grammar of a structural tag, in llguidance's dialect of Lark.

    Args:
        value: the tag's JSON object.
        is_special: whether a name is a special token. A trigger that is one matches that token, any
            other matches text.

    Raises:
        SchemaProblems: a tag's schema cannot be enforced.
        ValueError: the object has the wrong shape.
    """
    structures, triggers = _parts(value)
    problems: list[str] = []
    rules = []
    for i, structure in enumerate(structures):
        begin, end = structure.get("begin"), structure.get("end", "")
        if not isinstance(begin, str) or not begin or not isinstance(end, str):
            raise ValueError(f"structures[{i}] takes 'begin' and 'end', texts")
        trigger = next((t for t in triggers if begin.startswith(t)), None)
        if trigger is None:
            raise ValueError(f"structures[{i}].begin is {begin!r}, which no trigger begins")
        try:
            schema = prepared(structure.get("schema", {}))
        except SchemaProblems as e:
            problems += [f"structures[{i}].schema{line}" for line in e.lines]
            continue
        rules.append(_rule(i, trigger, begin, schema, end, special=is_special(trigger)))
    if problems:
        raise SchemaProblems(problems)
    names = " | ".join(f"tag_{i}" for i in range(len(structures)))
    head = f"start: ({names})* rest\nrest: TEXT\nTEXT: /(.|\\n)*/\n"
    return head + "".join(rules)


def _parts(value: Any) -> tuple[list[Mapping[str, Any]], list[str]]:
    value = value if isinstance(value, Mapping) else {}
    structures, triggers = value.get("structures"), value.get("triggers")
    if not isinstance(structures, list) or not structures or not isinstance(triggers, list):
        raise ValueError(
            'a structural tag takes {"structures": [{"begin": ..., "schema": ..., "end": ...}], '
            '"triggers": [...]}'
        )
    if not all(isinstance(s, Mapping) for s in structures):
        raise ValueError("structures takes objects")
    if not triggers or not all(isinstance(t, str) and t for t in triggers):
        raise ValueError("triggers takes texts that are not empty")
    return structures, triggers


def _rule(i: int, trigger: str, begin: str, schema: str, end: str, *, special: bool) -> str:
    body = " ".join(
        [*_quoted(begin[len(trigger) :]), f"%json {schema}", *_quoted(end)],
    )
    if special:
        return f"tag_{i}: TEXT {trigger} {body}\n"
    # `[lazy]` lets the tag begin at the first occurrence of the trigger.
    return f"head_{i}[lazy]: TEXT {_quoted(trigger)[0]}\ntag_{i}: head_{i} {body}\n"


def _quoted(text: str) -> list[str]:
    return [json.dumps(text, ensure_ascii=False)] if text else []
