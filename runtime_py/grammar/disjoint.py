"""Proves that no value is valid under both of two schemas, so that `oneOf` equals `anyOf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Schema = Any
Resolve = Callable[[dict[str, Any]], Schema]  # returns the schema that a `$ref` names

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string"})
_DEPTH = 8  # nesting depth to which schemas are compared; deeper ones are not proven disjoint
# maximum number of comparisons, a fraction of a second; after these nothing is proven
_STEPS = 50_000


class Disjoint:
    """Proves that schemas of one document are disjoint.

    Args:
        resolve: returns the schema that a `$ref` names, or the given one without a `$ref`.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._steps = 0

    def __call__(self, a: Schema, b: Schema, among: frozenset[str] = TYPES, depth: int = 0) -> bool:
        """Return True if types, constants, bounds or a required property prove disjointness.

        False means "not proven". `among` has the possible types of the values.
        """
        self._steps += 1
        if a is False or b is False:
            return True
        if depth > _DEPTH or self._steps > _STEPS:
            return False
        if not isinstance(a, dict) or not isinstance(b, dict):
            return False
        both = types(a) & types(b) & among
        if not both or _values_differ(a, b) or _integer_and_fractions(a, b) or _apart(a, b, both):
            return True
        if self._by_parts(a, b, both, depth) or self._by_parts(b, a, both, depth):
            return True
        return both == {"object"} and self._by_property(a, b, depth)

    def _by_parts(self, a: dict[str, Any], b: Schema, among: frozenset[str], depth: int) -> bool:
        """Compare the alternatives and references of `a` with `b`."""
        if "$ref" in a:
            target = self._resolve(a)
            if target is not a and self(target, b, among, depth + 1):
                return True
        if any(self(part, b, among, depth + 1) for part in _list(a.get("allOf"))):
            return True
        return any(
            bool(_list(a.get(name))) and all(self(part, b, among, depth + 1) for part in a[name])
            for name in ("anyOf", "oneOf")
        )

    def _by_property(self, a: dict[str, Any], b: dict[str, Any], depth: int) -> bool:
        required = {n for s in (a, b) for n in _list(s.get("required")) if isinstance(n, str)}
        return any(
            self(_property(a, name), _property(b, name), depth=depth + 1)
            for name in sorted(required)
        )


def _property(schema: dict[str, Any], name: str) -> Schema:
    """Return the schema of a property, as far as the comparison needs it."""
    named = schema.get("properties", {})
    if not isinstance(named, dict) or "patternProperties" in schema:
        return True
    return named.get(name, schema.get("additionalProperties", True))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def types(schema: dict[str, Any]) -> frozenset[str]:
    """Return the JSON types that a schema's `type`, `const` and `enum` allow.

    Integers are numbers.
    """
    allowed = TYPES
    if "type" in schema:
        named = schema["type"]
        names = named if isinstance(named, list) else [named]
        allowed &= {"number" if n == "integer" else str(n) for n in names}
    values = _values(schema)
    return allowed if values is None else allowed & {type_of(v) for v in values}


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


def _integer_and_fractions(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Tell whether one schema allows only integers, the other only fractional constants."""
    for integer, other in ((a, b), (b, a)):
        values = _values(other)
        if integer.get("type") == "integer" and values is not None:
            return not any(
                isinstance(v, (int, float)) and not isinstance(v, bool) and v == int(v)
                for v in values
            )
    return False


# For each JSON type, the keywords of its inclusive lower and upper bound.
_BOUNDS = (
    ({"number"}, "minimum", "maximum"),
    ({"string"}, "minLength", "maxLength"),
    ({"array"}, "minItems", "maxItems"),
    ({"object"}, "minProperties", "maxProperties"),
)


def _apart(a: dict[str, Any], b: dict[str, Any], both: frozenset[str]) -> bool:
    """Tell whether the upper bound of one schema is below the lower bound of the other."""
    for kind, least, most in _BOUNDS:
        if both == kind:
            return _less(a.get(most), b.get(least)) or _less(b.get(most), a.get(least))
    return False


def _less(most: Any, least: Any) -> bool:
    bounds = [v for v in (most, least) if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return len(bounds) == 2 and bounds[0] < bounds[1]


def type_of(value: Any) -> str:
    """Return the name that JSON Schema uses for the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "number"


def equal(a: Any, b: Any) -> bool:
    """Compare values by JSON Schema's equality: 1 equals 1.0, but 1 does not equal true."""
    if type_of(a) != type_of(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(equal(v, w) for v, w in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return bool(a == b)
