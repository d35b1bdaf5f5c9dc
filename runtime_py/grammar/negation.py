"""Complements of schemas, which rewrite `not`, `if` and `oneOf` to enforced keywords.

The alternatives together are exactly the complement; a schema whose complement cannot be expressed
is an error. So a keyword is never read as less than it says. Keywords that not every draft has, or
that grammars narrow (patterns, formats), have no complement here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .disjoint import TYPES, equal, type_of
from .formats import ENFORCED, REFUSED, REWRITTEN

Schema = Any

_STEPS = 5_000  # maximum number of schemas that one negation visits
# number of characters, of constants and of unchanged parts, that count as one more visit
_STEP = 50
_DEPTH = 8
_WORDS = 2_000  # maximum number of characters in all excluded strings together
_WORD = 60  # maximum number of characters in one excluded string, whose expression nests groups
_NUMBERS = 64

# For each type with bounds: the keyword of a bound, the opposite keyword, and the difference
# between their values.
_OPPOSITES = {
    "minimum": ("number", "exclusiveMaximum", 0),
    "maximum": ("number", "exclusiveMinimum", 0),
    "exclusiveMinimum": ("number", "maximum", 0),
    "exclusiveMaximum": ("number", "minimum", 0),
    "minLength": ("string", "maxLength", -1),
    "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1),
    "maxItems": ("array", "minItems", 1),
    "minProperties": ("object", "maxProperties", -1),
    "maxProperties": ("object", "minProperties", 1),
}
_OF_OBJECTS = (
    "required properties additionalProperties patternProperties propertyNames dependencies "
    "dependentRequired dependentSchemas".split()
)
_OF_LISTS = "items prefixItems additionalItems contains uniqueItems".split()
_OF_TYPE = {
    **dict.fromkeys(_OF_OBJECTS, "object"),
    **dict.fromkeys(_OF_LISTS, "array"),
    **dict.fromkeys(("pattern", "format"), "string"),
    "multipleOf": "number",
}


class NotNegated(ValueError):
    """A schema whose complement cannot be expressed; the message has the reason."""


def allowed_types(schema: Schema) -> frozenset[str]:
    """Return the names in a schema's own `type`; "integer" only if fractions are excluded."""
    named = schema.get("type") if isinstance(schema, dict) else None
    if named is None:
        return TYPES
    names = frozenset(map(str, named if isinstance(named, list) else [named]))
    return names - {"integer"} if "number" in names else names


def both_types(a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
    """Return the types that both schemas allow."""
    common = a & b
    narrower = {"integer", "number"} <= a | b and "number" not in common
    return common | {"integer"} if narrower else common


class Negation:
    """Computes complements of the schemas of one document.

    Args:
        resolve: returns the schema that a `$ref` names, or the given one without a `$ref`.
        constrains: whether a keyword may constrain anything.
    """

    def __init__(
        self, resolve: Callable[[dict[str, Any]], Schema], constrains: Callable[[str], bool]
    ) -> None:
        self._resolve = resolve
        self._constrains = constrains
        self._steps = 0

    def __call__(self, schema: Schema, among: frozenset[str], depth: int = 0) -> list[Schema]:
        """Return alternative schemas that together accept just the values that `schema` rejects.

        Args:
            schema: the schema to negate.
            among: types of the values that the result covers.
            depth: nesting depth of the negations.

        Raises:
            NotNegated: the complement cannot be expressed.
        """
        self._steps += 1
        if depth > _DEPTH or self._steps > _STEPS:
            raise NotNegated("its complement is too large")
        if isinstance(schema, bool):
            return [] if schema else [{"type": sorted(among)} if among != TYPES else True]
        if not isinstance(schema, dict):
            raise NotNegated("it is no schema")
        keywords = [k for k in schema if self._constrains(k)]
        if "$ref" in keywords and len(keywords) > 1:
            raise NotNegated("$ref with other keywords has no complement")
        branches = [one for k in keywords for one in self._keyword(k, schema, among, depth)]
        # Return a copy, because a later rewrite must not change a schema that is negated again.
        return branches if depth else list(json.loads(json.dumps(branches)))

    def _keyword(
        self, name: str, schema: dict[str, Any], among: frozenset[str], depth: int
    ) -> Iterator[Schema]:
        value = schema[name]
        of_type = _OPPOSITES[name][0] if name in _OPPOSITES else _OF_TYPE.get(name)
        if of_type is not None and not among & _kinds(of_type):
            return
        if name in ("const", "enum", "not", "required"):
            self._steps += len(json.dumps(value)) // _STEP
        if name == "type":
            yield from _other_types(schema, among)
        elif name in ("const", "enum"):
            yield from _other_values([value] if name == "const" else _checked(value, list), among)
        elif name in _OPPOSITES:
            yield from _opposite(name, value)
        elif name == "required":
            for one in _checked(value, list):
                yield {"type": "object", "properties": {_checked(one, str): False}}
        elif name == "properties":
            for key, one in _checked(value, dict).items():
                for other in self(one, TYPES, depth + 1):
                    yield {"type": "object", "properties": {key: other}, "required": [key]}
        elif name == "not":
            yield value
        elif name == "allOf":
            for one in _checked(value, list):
                yield from self(one, among, depth + 1)
        elif name == "anyOf":
            yield from _together([self(one, among, depth + 1) for one in _checked(value, list)])
        elif name == "$ref":
            yield from self._target(schema, among, depth)
        elif name == "items" and value is False and "prefixItems" not in schema:
            yield {"type": "array", "minItems": 1}
        elif name == "format" and value not in ENFORCED | REFUSED | REWRITTEN.keys():
            return
        elif value is not True or name not in ("items", "additionalProperties"):
            raise NotNegated(f"{name} in it has no complement")

    def _target(
        self, schema: dict[str, Any], among: frozenset[str], depth: int
    ) -> Iterator[Schema]:
        target = self._resolve(schema)
        if target is schema:
            raise NotNegated("$ref in it is not in the schema")
        yield from self(target, among, depth + 1)


def _kinds(name: str) -> frozenset[str]:
    return frozenset({"number", "integer"} if name == "number" else {name})


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise NotNegated("it is no schema")
    return value


def _other_types(schema: dict[str, Any], among: frozenset[str]) -> Iterator[Schema]:
    named = allowed_types(schema)
    if "integer" in named and "number" in among:
        raise NotNegated("integers cannot be left out of numbers")
    rest = among - named - (_kinds("number") if "number" in named else frozenset())
    if rest:
        yield {"type": sorted(rest)}


def _opposite(name: str, value: Any) -> Iterator[Schema]:
    kind, opposite, more = _OPPOSITES[name]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or (more != 0 and value != int(value)):
        raise NotNegated(f"{name} in it has no complement")
    if more == 0:
        yield {"type": kind, opposite: value}
    elif value + more >= 0:
        yield {"type": kind, opposite: int(value) + more}


def _together(each: list[list[Schema]]) -> Iterator[Schema]:
    """Yield the combinations of two lists of alternatives: each is valid under one of each list."""
    if all(each):
        yield {"allOf": [one[0] if len(one) == 1 else {"anyOf": one} for one in each]}


def _other_values(values: list[Any], among: frozenset[str]) -> Iterator[Schema]:
    """Yield schemas that accept all values of the given types except `values`."""
    by_type: dict[str, list[Any]] = {}
    for value in values:
        by_type.setdefault(type_of(value), []).append(value)
    rest = among - {name for kind in by_type for name in _kinds(kind)}
    if rest:
        yield {"type": sorted(rest)}
    for kind, of_type in by_type.items():
        if not among & _kinds(kind) or kind == "null":
            continue
        if kind == "boolean":
            yield from ({"const": b} for b in (False, True) if b not in of_type)
        elif kind == "number":
            yield from _between(sorted(set(of_type)))
        elif kind == "string":
            yield {"type": "string", "pattern": f"^{none_of(of_type)}$"}
        elif all(equal(value, type(value)()) for value in of_type):
            yield {"type": kind, "minItems" if kind == "array" else "minProperties": 1}
        else:
            raise NotNegated(f"an {kind} cannot be left out")


def _between(numbers: list[Any]) -> Iterator[Schema]:
    if len(numbers) > _NUMBERS:
        raise NotNegated(f"{len(numbers)} numbers cannot be left out; accepted are {_NUMBERS}")
    for low, high in zip([None, *numbers], [*numbers, None], strict=True):
        above = {} if low is None else {"exclusiveMinimum": low}
        yield {"type": "number", **above, **({} if high is None else {"exclusiveMaximum": high})}


def none_of(words: list[str]) -> str:
    """Return a regular expression, in JSON Schema's dialect, that matches all texts but `words`.

    Raises:
        NotNegated: the texts are too long.
    """
    if sum(map(len, words)) > _WORDS or max(map(len, words)) > _WORD:
        raise NotNegated(
            f"texts to leave out are too long; accepted are {_WORD} characters each and {_WORDS} "
            "in all"
        )
    return _others(set(words))


def _others(words: set[str]) -> str:
    heads: dict[str, set[str]] = {}
    for word in words - {""}:
        heads.setdefault(word[0], set()).add(word[1:])
    patterns = [] if "" in words else [""]
    patterns += [_literal(c) + _others(rest) for c, rest in sorted(heads.items())]
    listed = "".join(map(_literal, sorted(heads)))
    patterns.append((f"[^{listed}]" if heads else r"[\s\S]") + r"[\s\S]*")
    return f"(?:{'|'.join(patterns)})"


def _literal(char: str) -> str:
    if char.isascii() and not char.isalnum():
        return f"\\x{ord(char):02x}"
    return char
