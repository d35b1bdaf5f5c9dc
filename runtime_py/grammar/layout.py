r"""How JSON is written where a schema does not say: white space, and escapes in texts.

White space without a bound lets a model write blanks for ever, and even a generous bound lets a
small one spend its tokens on them. So there may be what writers of JSON put there: a blank, or a
line break and the indentation of a schema's deepest value, in blanks (up to four a level) or tabs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .disjoint import types

Layout = Mapping[str, Any]  # of the library's options, "x-guidance"

# As `json.dumps` writes: a blank after each comma and colon, no other.
ONE_LINE: Layout = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
# A character has one way to be written: else "\u0061" would not be the declared name "a". Control
# characters without a letter of their own cannot be written.
_ESCAPES = 'nrbtf\\"'
_WRITTEN = "\b\f\n\r\t"

_OPEN_LEVELS = 5  # of values that a schema says nothing of
_MOST_LEVELS = 10
_INDENTATION = 4  # blanks a level


def of_pattern(whitespace: str) -> Layout:
    """What may stand between tokens of JSON is what an expression matches."""
    return {"whitespace_pattern": whitespace}


def written(schema: dict[str, Any], layout: Layout | None, resolve: Callable[[Any], Any]) -> str:
    """The schema as the library takes it.

    Args:
        schema: one that is enforced.
        layout: None: the white space that models write in values of this schema.
        resolve: the schema that a `$ref` names.
    """
    if layout is None:
        levels = _Levels(resolve)(schema)
        blanks, tabs = f"[ ]{{0,{_INDENTATION * levels}}}", rf"\t{{0,{levels}}}"
        layout = of_pattern(rf"[ ]|\r?\n(?:{blanks}|{tabs})")
    return json.dumps({**schema, "x-guidance": {**layout, "json_allowed_escapes": _ESCAPES}})


def unwritable(value: Any) -> str | None:
    """A control character in the texts of a constant that cannot be written, as "U+0001"."""
    if isinstance(value, str):
        found = next((c for c in value if c < " " and c not in _WRITTEN), None)
        return None if found is None else f"U+{ord(found):04X}"
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for v in inner if (found := unwritable(v))), None)


class _Levels:
    """How deep the lists and objects of a schema lie inside each other, as far as it says."""

    def __init__(self, resolve: Callable[[Any], Any]) -> None:
        self._resolve = resolve
        self._known: dict[int, int] = {}

    def __call__(self, schema: Any) -> int:
        if not isinstance(schema, dict):
            return _OPEN_LEVELS if schema is True else 0
        if id(schema) not in self._known:
            self._known[id(schema)] = _OPEN_LEVELS  # where it refers to itself
            self._known[id(schema)] = min(self._of(schema), _MOST_LEVELS)
        return self._known[id(schema)]

    def _of(self, schema: dict[str, Any]) -> int:
        parts = [p for name in ("allOf", "anyOf") for p in _list(schema.get(name))]
        if "$ref" in schema:
            parts.append(self._resolve(schema))
        constants = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        inner = list(_inner(schema))
        if constants:
            return max(map(_depth, constants))
        if inner:
            return max(1 + max(map(self, inner)), *map(self, parts), 0)
        if parts:
            return max(map(self, parts))
        return _OPEN_LEVELS if types(schema) & {"object", "array"} else 0


def _inner(schema: dict[str, Any]) -> list[Any]:
    """Schemas of what its values hold."""
    maps = [schema.get(name) for name in ("properties", "patternProperties")]
    found = [v for one in maps if isinstance(one, dict) for v in one.values()]
    found += [schema[n] for n in ("additionalProperties", "additionalItems") if n in schema]
    for name in ("items", "prefixItems"):
        if name in schema:
            found += schema[name] if isinstance(schema[name], list) else [schema[name]]
    return found


def _depth(value: Any) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
