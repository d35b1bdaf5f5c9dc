"""Random schemas with parts that no value satisfies."""

from __future__ import annotations

import random
from typing import Any

FULL: list[Any] = [
    True,
    {"type": "string", "maxLength": 3},
    {"type": "string", "pattern": "^[ab]$"},
    {"type": "integer", "minimum": 0, "maximum": 9},
    {"type": "boolean"},
    {"const": "a"},
    {"type": "null"},
    {"$ref": "#/$defs/full"},
]
EMPTY: list[Any] = [
    False,
    {"not": {}},
    {"type": "string", "pattern": "^\\x01$"},
    {"type": "string", "pattern": "^a$", "minLength": 2},
    {"type": "string", "minLength": 2, "maxLength": 1},
    {"type": "integer", "minimum": 2, "maximum": 1},
    {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6},
    {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1},
    {"allOf": [{"type": "string"}, {"type": "number"}]},
    {"allOf": [{"type": "string", "pattern": "^a$"}, {"pattern": "^b$"}]},
    {"type": "array", "minItems": 1, "items": False},
    {"$ref": "#/$defs/loop"},
    {"$ref": "#/$defs/cycle"},
    {"$ref": "#/$defs/list"},
]
DEFINITIONS = {
    "full": {"type": "object", "properties": {"n": {"$ref": "#/$defs/full"}}},
    "loop": {"$ref": "#/$defs/loop"},
    "cycle": {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/cycle"}},
        "required": ["n"],
    },
    "list": {"type": "array", "items": {"$ref": "#/$defs/list"}, "minItems": 1},
}
NAMES = "abcd"
PATTERNS = ["^a$", "^[ab]$", "^b", "^\\x01$", "^(a|c)$", "c"]


class Maker:
    """Makes schemas; about a third of their parts are empty."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def schema(self) -> dict[str, Any]:
        combined = self._combined(3)
        return {**combined, "$defs": DEFINITIONS}

    def _part(self, depth: int) -> Any:
        chance = self._rng.random()
        if depth > 0 and chance < 0.4:
            return self._combined(depth)
        return self._rng.choice(EMPTY if chance > 0.75 else FULL)

    def _combined(self, depth: int) -> dict[str, Any]:
        make = self._rng.choice([self._object, self._object, self._array, self._union, self._all])
        return make(depth - 1)

    def _object(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        names = rng.sample(NAMES, rng.randrange(4))
        schema: dict[str, Any] = {"type": "object"}
        if names:
            schema["properties"] = {n: self._part(depth) for n in names}
        if rng.random() < 0.5:
            schema["required"] = rng.sample(NAMES, rng.randrange(1, 3))
        if rng.random() < 0.5:
            schema["patternProperties"] = {
                p: self._part(depth) for p in rng.sample(PATTERNS, rng.randrange(1, 3))
            }
        if rng.random() < 0.6:
            schema["additionalProperties"] = rng.choice([False, False, self._part(depth)])
        return schema

    def _array(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        schema: dict[str, Any] = {"type": "array"}
        if rng.random() < 0.5:
            schema["prefixItems"] = [self._part(depth) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.7:
            schema["items"] = self._part(depth)
        if rng.random() < 0.5:
            schema["minItems"] = rng.randrange(3)
        if rng.random() < 0.5:
            schema["maxItems"] = rng.randrange(4)
        return schema

    def _union(self, depth: int) -> dict[str, Any]:
        parts = [self._part(depth) for _ in range(self._rng.randrange(1, 4))]
        return {self._rng.choice(["anyOf", "anyOf", "oneOf"]): parts}

    def _all(self, depth: int) -> dict[str, Any]:
        make = self._rng.choice([self._object, self._array])
        other = self._rng.choice([make, make, self._union])
        return {"allOf": [make(depth), other(depth)]}
