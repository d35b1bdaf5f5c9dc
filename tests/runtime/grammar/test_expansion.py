"""Keywords that become others mean what they meant: text by text, against a validator."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.validators import extend

from wherry.errors import UsageError
from wherry.runtime.grammar.audit import SchemaProblems, Unsatisfiable, prepared
from wherry.runtime.grammar.expansion import EXPANDED

from .walking import accepts, bytes_vocabulary

# With the earlier drafts' `dependencies`, which the latest leaves out.
Validator = extend(
    Draft202012Validator, {"dependencies": Draft7Validator.VALIDATORS["dependencies"]}
)

VALUES = [None, False, True, 0, 1, 2, 0.5, "", "a", "ab", "b", [], [1], [1, 2], [2, 2]]
OBJECTS = [
    {name: value for name, value in zip("abc", values, strict=True) if value != "-"}
    for values in product(["-", 1, "a"], ["-", 1, None], ["-", 2])
]
INSTANCES = [*VALUES, *OBJECTS]


def random_schema(rng: random.Random, depth: int) -> Any:
    """Its properties come in one order, so that a text says what a value says."""
    schema: dict[str, Any] = {"properties": {"a": {}, "b": {}, "c": {}}} if depth == 2 else {}
    for _ in range(rng.choice([1, 1, 2]) if depth else 1):
        schema.update(random_keyword(rng, depth))
    return schema


def random_keyword(rng: random.Random, depth: int) -> dict[str, Any]:
    kinds = [_of_values, _of_objects, _of_objects]
    return rng.choice(kinds if depth == 0 else [*kinds, *[_expanded] * 5])(rng, depth)


def _of_values(rng: random.Random, depth: int) -> dict[str, Any]:
    types = ["null", "boolean", "string", "array", "object", rng.choice(["number", "integer"])]
    return rng.choice(
        [
            {"type": rng.sample(types, rng.randrange(1, 4))},
            {"type": rng.choice(types)},
            {"const": rng.choice(VALUES)},
            {"enum": rng.sample([*VALUES, {}], rng.randrange(1, 4))},
            {rng.choice(["minimum", "exclusiveMaximum"]): rng.choice([0, 1, 0.5])},
            {rng.choice(["minLength", "maxLength", "minItems", "maxItems"]): rng.randrange(2)},
        ]
    )


def _of_objects(rng: random.Random, depth: int) -> dict[str, Any]:
    inner = random_keyword(rng, depth - 1) if depth else rng.choice([{"type": "integer"}, False])
    name = rng.choice("abc")
    properties = {"a": {}, "b": {}, "c": {}, name: inner}
    return rng.choice(
        [
            {"required": rng.sample("abc", rng.randrange(1, 3))},
            {"properties": properties},
            {"type": "object", "required": [name], "properties": properties},
            {"properties": {"a": {}, "b": inner}, "additionalProperties": False},
        ]
    )


def _expanded(rng: random.Random, depth: int) -> dict[str, Any]:
    def inner() -> Any:
        return random_schema(rng, depth - 1) if rng.random() < 0.95 else rng.random() < 0.5

    a, b, c = rng.sample("abc", 3)
    keyword = rng.choice(sorted(EXPANDED - {"then", "else"}))
    if keyword == "not":
        return {"not": inner()}
    if keyword == "oneOf":
        return {"oneOf": [inner() for _ in range(rng.randrange(1, 4))]}
    if keyword == "if":
        branches = {"then": inner(), "else": inner()}
        return {"if": inner(), **{k: v for k, v in branches.items() if rng.random() < 0.7}}
    if keyword == "uniqueItems":
        items = rng.choice([{"enum": [1, 2, "a"]}, {"type": "boolean"}, {"type": "integer"}])
        return {"uniqueItems": True, "items": items, "maxItems": rng.randrange(3)}
    names = {a: rng.sample([b, c], rng.randrange(3)), b: [c]}
    schemas = {a: inner(), b: inner()}
    if keyword == "dependencies":
        return {keyword: {**names, **{c: inner()}} if rng.random() < 0.5 else schemas}
    return {keyword: names if keyword == "dependentRequired" else schemas}


def check_random(seed: int, count: int) -> None:
    rng = random.Random(seed)
    enforced = 0
    for _ in range(count):
        schema = random_schema(rng, 2)
        validator = Validator(schema)
        try:
            text = prepared(json.loads(json.dumps(schema)))
        except Unsatisfiable as e:
            # It names properties and no type, so it means objects (`types_in`, schema_grammar.cc).
            assert not any(map(validator.is_valid, OBJECTS)), (schema, str(e))
            continue
        except SchemaProblems as e:
            assert all(line.startswith("#") and "cannot be enforced" in line for line in e.lines)
            continue
        valid = [*map(validator.is_valid, INSTANCES)]
        try:
            grammar = bytes_vocabulary().compile("json_schema", text)
        except UsageError as e:
            named = "minProperties" in str(e) or "min/maxProperties" in str(e)
            assert named or ("nsatisfiable" in str(e) and not any(valid)), (schema, str(e))
            continue
        enforced += 1
        taken = [accepts(grammar, json.dumps(instance)) for instance in INSTANCES]
        differ = [i for i, v, t in zip(INSTANCES, valid, taken, strict=True) if v != t]
        assert not differ, (json.dumps(schema), differ)
    assert enforced > count // 3


def test_random_schemas():
    check_random(0, 60)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_random_schemas(seed):
    check_random(seed, 250)


def test_a_new_schema_is_not_taken_for_a_dropped_one():
    """Each `not` is dropped, and the next one's complement may be made in its place in memory."""
    nothing, either = {"not": {"type": "null"}}, {"oneOf": [{"type": "null"}, {"type": "boolean"}]}
    many = {f"p{i}": {"not": {"not": either}} if i % 2 else nothing for i in range(40)}
    text = prepared({"type": "object", "properties": many})
    assert "oneOf" not in text and '"not"' not in text
