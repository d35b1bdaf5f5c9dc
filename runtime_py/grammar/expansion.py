"""Rewrites JSON Schema keywords that grammars do not support to keywords that they support.

`not`, `oneOf`, `if`, `dependentRequired` and its relatives become unions, and `uniqueItems` over
few values becomes a union of lists. The set of valid values stays the same; if that would take too
much space, or cannot be expressed, the keyword is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from math import perm, prod
from typing import Any

from .disjoint import TYPES, Disjoint, equal
from .negation import Negation, NotNegated, Schema, allowed_types, both_types

EXPANDED = frozenset(
    "not oneOf if then else dependencies dependentRequired dependentSchemas uniqueItems".split()
)

_UNIONS = 6  # maximum number of dependencies in a schema; each doubles the size of the union
_ALTERNATIVES = 256  # maximum number of alternatives in one `oneOf`
_LISTS = 500  # maximum number of lists in the union that replaces one `uniqueItems`
_TEXT = 2**20  # maximum number of characters in the lists that replace one `uniqueItems`


class Expansion:
    """Rewrites the schemas of one document.

    Args:
        disjoint: compares schemas.
        negation: makes complements of schemas.
        resolve: returns the schema that a `$ref` names, or the given one without a `$ref`.
        add: receives a keyword's path and the reason of its refusal.
        place: receives a schema that the client sent, and its path, before the schema moves.
    """

    def __init__(
        self,
        disjoint: Disjoint,
        negation: Negation,
        resolve: Callable[[dict[str, Any]], Schema],
        add: Callable[[str, str], None],
        place: Callable[[Schema, str], None],
    ) -> None:
        self._disjoint = disjoint
        self._negation = negation
        self._resolve = resolve
        self._add = add
        self._place = place

    def __call__(self, schema: dict[str, Any], original: dict[str, Any], path: str) -> None:
        """Rewrite a schema in place, without its subschemas.

        Args:
            schema: the schema to rewrite.
            original: the schema as the client sent it.
            path: the schema's path in the document.
        """
        among = allowed_types(original)
        for name, expand in (
            ("oneOf", self._one_of),
            ("not", self._not),
            ("if", self._if),
            ("dependentRequired", self._dependent),
            ("dependentSchemas", self._dependent),
            ("dependencies", self._dependent),
            ("uniqueItems", self._unique_items),
        ):
            if name not in schema:
                continue
            try:
                all_of = _all_of(schema)
                expanded = expand(schema, original, name, f"{path}/{name}", among)
            except NotNegated as e:
                self._add(f"{path}/{name}", f"{name} cannot be enforced: {e}")
                continue
            if name == "oneOf":
                continue
            del schema[name]
            for one in expanded:
                self._place(one, f"{path}/{name}")
            if expanded:
                schema["allOf"] = [*all_of, *expanded]
        for name in ("then", "else"):  # `then` and `else` have no effect without `if`
            if "if" not in schema:
                schema.pop(name, None)

    def _not(
        self, schema: Any, original: Any, name: str, path: str, among: frozenset[str]
    ) -> list[Schema]:
        branches = self._negation(original[name], among)
        if True in branches:
            return []
        return [_either(branches)]

    def _if(
        self, schema: Any, original: Any, name: str, path: str, among: frozenset[str]
    ) -> list[Schema]:
        then, other = schema.get("then", True), schema.get("else", True)
        if then is True and other is True:
            return []
        self._place(schema["if"], path)
        for key in ("then", "else"):
            self._place(schema.get(key), path[: -len("if")] + key)
        branches = [{"allOf": [schema["if"], then]}]
        branches += [{"allOf": [one, other]} for one in self._negation(original["if"], among)]
        return [_either(branches)]

    def _dependent(
        self, schema: Any, original: Any, name: str, path: str, among: frozenset[str]
    ) -> list[Schema]:
        if not isinstance(schema[name], dict):
            raise NotNegated("it takes an object")
        together: dict[frozenset[str], list[str]] = {}
        conditions: list[Schema] = []
        for trigger, value in schema[name].items():
            if isinstance(value, list) and all(isinstance(n, str) for n in value):
                together.setdefault(frozenset({trigger, *value}), []).append(trigger)
            elif isinstance(value, (dict, bool)):
                self._place(value, f"{path}/{trigger}")
                conditions.append(
                    _where([trigger], {"required": [trigger], "allOf": [value]}, among)
                )
            else:
                raise NotNegated(f"{trigger!r} takes names or a schema")
        for names, triggers in together.items():
            if len(names) > 1:
                conditions.append(_where(triggers, {"required": sorted(names)}, among))
        if len(conditions) > _UNIONS:
            raise NotNegated(f"it has {len(conditions)} dependencies; accepted are {_UNIONS}")
        return conditions

    def _unique_items(
        self, schema: Any, original: Any, name: str, path: str, among: frozenset[str]
    ) -> list[Schema]:
        if not isinstance(original[name], bool):
            raise NotNegated("it takes a boolean")
        most = original.get("maxItems")
        short = isinstance(most, (int, float)) and not isinstance(most, bool) and most <= 1
        if not original[name] or short or "array" not in among:
            return []
        if self._is_tuple(original):
            return []
        values = None if "prefixItems" in original else self._values(original.get("items"))
        if values is None:
            raise NotNegated("its items have to be of few values (enum), or maxItems 1")
        size = min([len(values), *([int(most)] if isinstance(most, (int, float)) else [])])
        count = sum(perm(len(values), n) for n in range(size + 1))
        if count * len(json.dumps(values)) > _TEXT:
            raise NotNegated(f"its {len(values)} values are too long")
        if count > _LISTS:
            raise NotNegated(
                f"there are {count} lists of its {len(values)} values; accepted are {_LISTS}. Give "
                "it a smaller maxItems"
            )
        lists = [list(one) for n in range(size + 1) for one in permutations(values, n)]
        rest = among - {"array"}
        return [_either([{"enum": lists}, *([{"type": sorted(rest)}] if rest else [])])]

    def _is_tuple(self, schema: dict[str, Any]) -> bool:
        """Tell whether each item has its own schema, and no value is valid under two of them."""
        parts, rest = schema.get("prefixItems"), schema.get("items", True)
        if isinstance(rest, list):
            parts, rest = rest, schema.get("additionalItems", True)
        if not isinstance(parts, list):
            return rest is False
        most = schema.get("maxItems")
        closed = rest is False or (isinstance(most, int) and most <= len(parts))
        return closed and not any(self._overlaps(parts))

    def _values(self, items: Schema) -> list[Any] | None:
        """List the possible values of items, each once; None: unknown."""
        if not isinstance(items, dict):
            return None
        if "$ref" in items and (target := self._resolve(items)) is not items:
            return self._values(target)
        named = allowed_types(items)
        if "const" in items or isinstance(items.get("enum"), list):
            values = [items["const"]] if "const" in items else items["enum"]
        elif "type" in items and named <= {"boolean", "null"}:
            values = [v for v in (False, True, None) if (v is None) <= ("null" in named)]
            values = [v for v in values if v is None or "boolean" in named]
        else:
            return None
        return [v for i, v in enumerate(values) if not any(equal(v, w) for w in values[:i])]

    def _overlaps(
        self, parts: list[Schema], among: frozenset[str] = TYPES
    ) -> Iterator[tuple[int, int]]:
        for j, part in enumerate(parts):
            for i in range(j):
                if not self._disjoint(parts[i], part, among):
                    yield i, j

    def _one_of(
        self, schema: Any, original: Any, name: str, path: str, among: frozenset[str]
    ) -> list[Schema]:
        """Replace `oneOf` at its position, because the order of keywords orders properties."""
        parts, given = schema[name], original[name]
        if not isinstance(parts, list):
            raise NotNegated("it takes a list of schemas")
        for i, part in enumerate(parts):
            self._place(part, f"{path}/{i}")
        others: list[list[list[Schema]]] = [[] for _ in parts]
        types = {"number" if t == "integer" else t for t in among}
        for i, j in self._overlaps(given, frozenset(types)):
            for one, other in ((i, j), (j, i)):
                others[one].append(self._complement(given[other], given[one], among, (i, j)))
        size = sum(prod(map(len, one)) for one in others)
        if size > _ALTERNATIVES:
            raise NotNegated(f"it has {size} alternatives; accepted are {_ALTERNATIVES}")
        union = [
            part if not other else {"allOf": [part, *map(_either, other)]}
            for part, other in zip(parts, others, strict=True)
            if all(other)
        ]
        _replace(schema, name, union)
        return []

    def _complement(
        self, schema: Schema, other: Schema, among: frozenset[str], pair: tuple[int, int]
    ) -> list[Schema]:
        try:
            return self._negation(schema, both_types(allowed_types(other), among))
        except NotNegated as e:
            raise NotNegated(
                f"{pair[0]} and {pair[1]} may both be valid ({e}). Use anyOf, or give them a "
                "required property with another constant each"
            ) from e


def _where(triggers: list[str], then: dict[str, Any], among: frozenset[str]) -> Schema:
    """Return the schema "none of the `triggers` properties exists, or `then` is valid"."""
    kind = {"type": "object"} if among == {"object"} else {}
    without = {**kind, "properties": dict.fromkeys(triggers, False)}
    return {"anyOf": [without, {"type": "object", **then}]}


def _either(branches: list[Schema]) -> Schema:
    return False if not branches else branches[0] if len(branches) == 1 else {"anyOf": branches}


def _all_of(schema: dict[str, Any]) -> list[Any]:
    parts = schema.get("allOf", [])
    if not isinstance(parts, list):
        raise NotNegated("its allOf takes a list")
    return parts


def _replace(schema: dict[str, Any], name: str, union: list[Schema]) -> None:
    taken = "anyOf" in schema
    key = "allOf" if taken else "anyOf"
    value: list[Schema] = union or [False]
    if taken:
        value = [*_all_of(schema), {"anyOf": value}]
    items = [(k, v) for k, v in schema.items() if not (taken and k == key)]
    replaced = {key if k == name else k: value if k == name else v for k, v in items}
    schema.clear()
    schema.update(replaced)
