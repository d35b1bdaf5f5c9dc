"""Random schemas, of apps: what is written fits them, or they are refused; see test_guided."""

from __future__ import annotations

import random
from typing import Any

import pytest

from .guided_cases import schema
from .obedient import Obedient, Refused, valid
from .programs import Program


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield Obedient(program)


NAMES = ["a", "b", 'q"', "ä", "$ref", "a b"]


def random_schema(rng: random.Random, depth: int) -> Any:
    """Of the keywords that are enforced."""
    kind = rng.choice(["string", "integer", "number", "boolean", "null", "array", "object", "any"])
    if rng.random() < 0.15:
        return {"enum": [random_value(rng, 2) for _ in range(rng.randrange(1, 4))]}
    if rng.random() < 0.1:
        return {"const": random_value(rng, 2)}
    if kind in ("integer", "number"):
        low, high = sorted(rng.sample(range(-1200, 1200), 2))
        bounds = {rng.choice(["minimum", "exclusiveMinimum"]): low / rng.choice([1, 8])}
        bounds |= {rng.choice(["maximum", "exclusiveMaximum"]): high}
        bounds |= {"multipleOf": low % 7 / 4 or 3}
        return {"type": kind, **{k: v for k, v in bounds.items() if rng.random() < 0.4}}
    if kind == "string" and rng.random() < 0.6:
        return random_text(rng)
    if depth and rng.random() < 0.15:
        parts = [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
        return {rng.choice(["allOf", "oneOf", "anyOf"]): parts}
    if depth == 0 or kind in ("string", "boolean", "null"):
        return {"type": rng.choice([kind, [kind, "null"]]) if kind != "any" else "string"}
    if kind == "any":
        return {"anyOf": [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}
    if kind == "array":
        counts = sorted(rng.randrange(4) for _ in range(2))
        node: dict[str, Any] = {"type": "array", "items": random_schema(rng, depth - 1)}
        if rng.random() < 0.3:
            node["prefixItems"] = [
                random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 3))
            ]
        return {**node, "minItems": counts[0], "maxItems": counts[1] + 1}
    names = rng.sample(NAMES, rng.randrange(len(NAMES)))
    node = {"type": "object", "properties": {n: random_schema(rng, depth - 1) for n in names}}
    node["required"] = [n for n in names if rng.random() < 0.6]
    if rng.random() < 0.8:
        node["additionalProperties"] = rng.choice([False, False, random_schema(rng, depth - 1)])
    return node


def random_text(rng: random.Random) -> Any:
    patterns = ["^[a-c]{2,5}$", "b", "^(?:x|yz)*$", "^(?!a).*[0-9]$", "[^ -~]", '^"']
    bounds = {"minLength": rng.randrange(4), "maxLength": rng.randrange(3, 90)}
    bounds |= {"pattern": rng.choice(patterns), "not": {"enum": ["", "b", "xyz"]}}
    return {"type": "string", **{k: v for k, v in bounds.items() if rng.random() < 0.4}}


def random_value(rng: random.Random, depth: int) -> Any:
    if depth and rng.random() < 0.3:
        return {rng.choice(NAMES): random_value(rng, depth - 1)}
    if depth and rng.random() < 0.3:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return rng.choice([None, True, 0, -7, 2.5, "", "x", 'a"\\b\n', "日本", 10**12])


@pytest.mark.parametrize("seed", [0])
def test_random_schemas(cpp, seed):
    check_random(cpp, seed, 12)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_random_schemas(cpp, seed):
    check_random(cpp, seed, 100)


def check_random(cpp: Obedient, seed: int, count: int) -> None:
    rng = random.Random(seed)
    complete = 0
    for _ in range(count):
        value = random_schema(rng, 3)
        try:
            text = cpp.text(
                {"response_format": schema(value), "max_tokens": 400}, rng.randrange(99)
            )
        except Refused as e:
            assert e.error["code"] in ("invalid_grammar", "unsupported_schema"), value
            continue
        if text:
            valid(text, value)
            complete += 1
    assert complete > count // 4


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_schemas_that_are_none(cpp, seed):
    """Values of any type where keywords have theirs: an answer or an error, each time."""
    rng = random.Random(seed)
    words = ["type", "properties", "items", "enum", "const", "$ref", "$defs", "required", "anyOf"]
    words += ["oneOf", "allOf", "not", "if", "then", "pattern", "minLength", "multipleOf"]
    words += ["uniqueItems", "patternProperties", "propertyNames", "dependencies", "format"]
    words += ["minimum", "minItems", "maxItems", "additionalProperties", "prefixItems"]

    def junk(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([None, True, -1, 1e99, "x", "string", "#", "#/$defs/a", [], {}])
        if rng.random() < 0.3:
            return [junk(depth - 1) for _ in range(rng.randrange(4))]
        return {rng.choice([*words, "a"]): junk(depth - 1) for _ in range(rng.randrange(5))}

    for _ in range(150):
        try:
            cpp.chunks({"response_format": schema(junk(4)), "max_tokens": 8}, 0)
        except Refused as e:
            assert e.error["message"]
