r"""White space and escapes in JSON output, which schemas do not define.

Unbounded white space lets a model write blanks for ever, and a small model spends its tokens on a
generous bound. So the grammar allows what JSON writers produce: a blank, or a line break and an
indentation up to the schema's deepest value, in blanks (up to four a level) or tabs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .disjoint import types

Layout = Mapping[str, Any]  # options of llguidance under the key "x-guidance"

# The white space that `json.dumps` writes: one blank after each comma and colon.
ONE_LINE: Layout = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
# Each character has one spelling: otherwise "\u0061" would not match the property name "a". Control
# characters without a short escape are excluded.
_ESCAPES = 'nrbtf\\"'
_WRITTEN = "\b\f\n\r\t"

_OPEN_LEVELS = 5  # nesting levels of a value without a schema that may be indented
_MOST_LEVELS = 10
_INDENTATION = 4  # maximum number of blanks of indentation at each level


def of_pattern(whitespace: str) -> Layout:
    """Return the layout in which a regular expression matches the space between JSON tokens."""
    return {"whitespace_pattern": whitespace}


def written(schema: dict[str, Any], layout: Layout | None, resolve: Callable[[Any], Any]) -> str:
    """Return a schema as JSON text, with llguidance's options for white space added.

    Args:
        schema: an enforceable schema.
        layout: None: the default for the depth of this schema.
        resolve: returns the schema that a `$ref` names.
    """
    if layout is None:
        levels = _Levels(resolve)(schema)
        blanks, tabs = f"[ ]{{0,{_INDENTATION * levels}}}", rf"\t{{0,{levels}}}"
        layout = of_pattern(rf"[ ]|\r?\n(?:{blanks}|{tabs})")
    return json.dumps({**schema, "x-guidance": {**layout, "json_allowed_escapes": _ESCAPES}})


def unwritable(value: Any) -> str | None:
    """Return a constant's first control character without a short escape, as "U+0001"; or None."""
    if isinstance(value, str):
        character = next((c for c in value if c < " " and c not in _WRITTEN), None)
        return None if character is None else f"U+{ord(character):04X}"
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((character for v in inner if (character := unwritable(v))), None)


class _Levels:
    """Computes how deep the arrays and objects that a schema allows are nested."""

    def __init__(self, resolve: Callable[[Any], Any]) -> None:
        self._resolve = resolve
        self._known: dict[int, int] = {}

    def __call__(self, schema: Any) -> int:
        if not isinstance(schema, dict):
            return _OPEN_LEVELS if schema is True else 0
        if id(schema) not in self._known:
            # stands for a schema that refers to itself until its own depth is known
            self._known[id(schema)] = _OPEN_LEVELS
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
    """Return the schemas of the elements and properties of a value."""
    maps = [schema.get(name) for name in ("properties", "patternProperties")]
    schemas = [v for one in maps if isinstance(one, dict) for v in one.values()]
    schemas += [schema[n] for n in ("additionalProperties", "additionalItems") if n in schema]
    for name in ("items", "prefixItems"):
        if name in schema:
            schemas += schema[name] if isinstance(schema[name], list) else [schema[name]]
    return schemas


def _depth(value: Any) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
