"""Whether no value is valid under both of two schemas: then `oneOf` is `anyOf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Schema = Any
Resolve = Callable[[dict[str, Any]], Schema]  # follows `$ref`

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string"})
_DEPTH = 8  # of schemas inside schemas that are looked at; deeper is not proven
_STEPS = 50_000  # comparisons in all, a fraction of a second; beyond them nothing is proven


class Disjoint:
    """Compares schemas of one document.

    Args:
        resolve: the schema that a `$ref` names, or the given one if it names none.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._steps = 0

    def __call__(self, a: Schema, b: Schema, depth: int = 0) -> bool:
        """True where it is proven by types, by constants, or by a property that both require.

        False says that it is not proven, not that it is wrong.
        """
        self._steps += 1
        if a is False or b is False:
            return True
        if depth > _DEPTH or self._steps > _STEPS:
            return False
        if not isinstance(a, dict) or not isinstance(b, dict):
            return False
        if not types(a) & types(b) or _values_differ(a, b) or _whole_and_broken(a, b):
            return True
        if self._by_parts(a, b, depth) or self._by_parts(b, a, depth):
            return True
        return types(a) == types(b) == {"object"} and self._by_property(a, b, depth)

    def _by_parts(self, a: dict[str, Any], b: Schema, depth: int) -> bool:
        """By what `a` refers to, or is made of."""
        if "$ref" in a:
            target = self._resolve(a)
            if target is not a and self(target, b, depth + 1):
                return True
        if any(self(part, b, depth + 1) for part in _list(a.get("allOf"))):
            return True
        return any(
            bool(_list(a.get(name))) and all(self(part, b, depth + 1) for part in a[name])
            for name in ("anyOf", "oneOf")
        )

    def _by_property(self, a: dict[str, Any], b: dict[str, Any], depth: int) -> bool:
        left, right = a.get("properties"), b.get("properties")
        if not isinstance(left, dict) or not isinstance(right, dict):
            return False
        required = [n for n in _list(a.get("required")) if n in _list(b.get("required"))]
        names = [n for n in required if isinstance(n, str) and n in left and n in right]
        return any(self(left[name], right[name], depth + 1) for name in names)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def types(schema: dict[str, Any]) -> frozenset[str]:
    """Types of JSON that its own `type`, `const` and `enum` allow; integers are numbers."""
    allowed = _TYPES
    if "type" in schema:
        named = schema["type"]
        names = named if isinstance(named, list) else [named]
        allowed &= {"number" if n == "integer" else str(n) for n in names}
    values = _values(schema)
    return allowed if values is None else allowed & {_type_of(v) for v in values}


def _values(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _values_differ(a: dict[str, Any], b: dict[str, Any]) -> bool:
    left, right = _values(a), _values(b)
    if left is None or right is None:
        return False
    return not any(equal(v, w) for v in left for w in right)


def _whole_and_broken(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """One takes integers, the other constants that are none."""
    for whole, other in ((a, b), (b, a)):
        values = _values(other)
        if whole.get("type") == "integer" and values is not None:
            return not any(
                isinstance(v, (int, float)) and not isinstance(v, bool) and v == int(v)
                for v in values
            )
    return False


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "number"


def equal(a: Any, b: Any) -> bool:
    """As JSON Schema compares: 1 and 1.0 are equal, 1 and true are not."""
    if _type_of(a) != _type_of(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(equal(v, w) for v, w in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return bool(a == b)
