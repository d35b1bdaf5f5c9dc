"""A schema that was taken never ends in the middle of an output."""

from __future__ import annotations

import json
import random

import pytest
from jsonschema import Draft202012Validator

from wherry.errors import UsageError
from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.audit import SchemaProblems, Unsatisfiable, prepared
from wherry.runtime.grammar.fields import constraint_of

from .empty_parts import Maker
from .walking import accepts, bytes_vocabulary, outputs, walk_of, written

SCORE = {
    "type": "object",
    "properties": {"score": {"type": "integer"}},
    "patternProperties": {"^score$": {"maximum": 5}},
    "required": ["score"],
    "additionalProperties": False,
}
CASES = [
    (
        {
            "type": "object",
            "properties": {"a": {}},
            "required": ["a"],
            "patternProperties": {"^a$": {}},
            "additionalProperties": False,
        },
        ['{"a": 1}'],
        ['{"a": 1, '],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^\\x01$"}, "b": {"const": 1}},
            "additionalProperties": False,
        },
        ["{}", '{"b": 1}'],
        ['{"a'],
    ),
    (
        {"prefixItems": [{"const": 1}, {"multipleOf": 7, "minimum": 1, "maximum": 6}]},
        ["[]", "[1]"],
        ["[1,"],
    ),
    (
        {"patternProperties": {"^[ab]$": {"const": 1}}, "additionalProperties": False},
        ["{}", '{"a": 1, "b": 1}'],
        ['{"a": 1, "a'],
    ),
]


def compiled(schema):
    return bytes_vocabulary().compile("json_schema", prepared(schema))


def begins(grammar, text: str) -> bool:
    walk = walk_of(grammar)
    for byte in text.encode():
        if byte not in walk.allowed():
            return False
        walk.accept(byte)
    return True


@pytest.mark.parametrize(("schema", "valid", "impossible"), CASES, ids=range(len(CASES)))
def test_impossible_parts_are_left_out(schema, valid, impossible):
    grammar = compiled(schema)
    assert all(begins(grammar, text) for text in valid)
    assert not any(begins(grammar, text) for text in impossible)
    assert outputs(grammar, 10)


def test_a_pattern_of_a_property_holds_for_it():
    grammar = compiled(SCORE)
    assert accepts(grammar, '{"score": 5}') and not accepts(grammar, '{"score": 6}')


NOTHING = [
    {"$ref": "#/$defs/n", "$defs": {"n": {"$ref": "#/$defs/n"}}},
    {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    {"type": "string", "pattern": "^\\x01$"},
]


@pytest.mark.parametrize("schema", NOTHING, ids=range(len(NOTHING)))
def test_a_schema_without_a_value_is_refused(schema):
    with pytest.raises(RequestError, match="no value is valid") as error:
        constraint_of({"json_schema": schema})
    assert error.value.code == "invalid_grammar"


def test_an_impossible_part_that_cannot_be_left_out_is_named():
    both = {"type": "object", "properties": {"b": {"type": "string", "pattern": "^x$"}}}
    other = {"type": "object", "properties": {"b": {"type": "string", "pattern": "^y$"}}}
    with pytest.raises(Unsatisfiable, match=r"#/.*properties/b: no value is valid here"):
        prepared({"allOf": [both, other]})


def check(seed: int, count: int) -> dict[str, int]:
    """Write outputs of random schemas; return how many were taken, and refused."""
    rng = random.Random(seed)
    maker, counts = Maker(rng), {"taken": 0, "refused": 0}
    for i in range(count):
        schema = maker.schema()
        try:
            grammar = compiled(schema)
        except SchemaProblems as e:
            assert all(line.startswith("#") for line in e.lines), schema
            counts["refused"] += 1
            continue
        except UsageError as e:
            assert "NoExtensionBias" not in str(e), (schema, e)
            counts["refused"] += 1
            continue
        counts["taken"] += 1
        for _ in range(3):
            try:
                text = written(grammar, rng)
            except UsageError as e:
                raise AssertionError(f"seed {seed}, {i}: {json.dumps(schema)}") from e
            if text is not None:
                assert valid(schema, json.loads(text)), (schema, text)
    return counts


def valid(schema, value) -> bool:
    try:
        return Draft202012Validator(schema).is_valid(value)
    except RecursionError:  # of a $ref that leads to itself, which no value satisfies
        return True


def test_schemas_with_empty_parts():
    counts = check(1, 120)
    assert min(counts.values()) > 20, counts


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_schemas_with_empty_parts(seed):
    counts = check(seed, 2_000)
    assert min(counts.values()) > 300, counts


ENDLESS = ['root ::= "a" root', 'root ::= x\nx ::= "a" y\ny ::= x [a-z]', 'start: "a" start']


@pytest.mark.parametrize("grammar", ENDLESS)
def test_a_grammar_without_an_end_is_refused(grammar):
    with pytest.raises(RequestError, match=r"has no end: each text of its rule (root|start) "):
        constraint_of({"grammar": grammar})


ENDING = ['root ::= "a" root | "b"', 'root ::= "a" (root | "c")*', 'start: "a" start?']
ENDING += ['start: item+\nitem: /a[\\/]/ "b" | WORD\nWORD: /x/']


@pytest.mark.parametrize("grammar", ENDING)
def test_a_grammar_that_may_end_is_taken(grammar):
    assert constraint_of({"grammar": grammar}).kind == "lark"


def test_objects_are_closed():
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {"type": "object"}}}
    union = {"anyOf": [schema, {"properties": {"c": {"const": 2}}, "required": ["c"]}]}
    both = {"allOf": [schema, {"properties": {"c": {"const": 2}}, "required": ["d"]}]}
    shared = {
        "type": "object",
        "properties": {
            "x": {"$ref": "#/$defs/a"},
            "y": {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"d": {"const": 3}}}]},
        },
        "$defs": {
            "a": {**schema, "properties": {**schema["properties"], "n": {"$ref": "#/$defs/a"}}}
        },
    }
    for case, valid, invalid in (
        (
            shared,
            ['{"x": {"a": 1, "n": {"n": {}}}}', '{"y": {"a": 1, "d": 3}}'],
            ['{"x": {"d', '{"x": {"n": {"d', '{"y": {"e', '{"y": {"n": {"d'],
        ),
        (schema, ['{"a": 1, "b": {"x": 2}}', "{}"], ['{"c']),
        ({**schema, "additionalProperties": True}, ['{"c": 1}'], ['{"a": 2']),
        ({"type": "object"}, ['{"c": 1}'], []),
        ({"type": "object", "not": {"required": ["a"]}}, ['{"c": 1}'], ['{"a"']),
        (union, ['{"c": 2}', '{"a": 1}'], ['{"d', '{"a": 1, "c']),
        (both, ['{"a": 1, "c": 2, "d": 3}'], ['{"e']),
        ({"properties": {"a": {"const": 1}}, "required": ["b"]}, ['{"a": 1, "b": []}'], ['{"c']),
    ):
        grammar = compiled(case)
        assert all(accepts(grammar, text) for text in valid), case
        assert not any(begins(grammar, text) for text in invalid), case


@pytest.mark.parametrize(
    ("schema", "valid", "endless"),
    [
        ({"type": "integer"}, "9" * 18, "9" * 19),
        ({"type": ["integer", "null"], "minimum": 0}, "9" * 18, "9" * 19),
        ({"type": "integer", "exclusiveMaximum": 0}, "-" + "9" * 18, "-" + "9" * 19),
        ({"type": "integer", "minimum": 10**18}, "9" + "0" * 18, "9" + "0" * 19),
        ({"type": "number", "minimum": 0}, "9" * 18, "9" * 19),
        ({"type": "number", "minimum": 0}, "0.0123456789", "0.01234567890"),
        ({"type": "number", "maximum": 1.5}, "-1.0123456789", "-1.01234567890"),
    ],
)
def test_digits_are_bounded(schema, valid, endless):
    grammar = compiled(schema)
    assert accepts(grammar, valid) and not begins(grammar, endless)
    assert begins(grammar, endless[:-1])


def test_a_number_without_limits_may_have_an_exponent():
    assert accepts(compiled({"type": "number"}), "6.62607015e-34")


def test_a_divisor_is_not_combined_with_one_of_decimals():
    both = {"allOf": [{"type": "number", "minimum": 0}, {"multipleOf": 3}]}
    grammar = compiled(both)
    assert accepts(grammar, "9") and not accepts(grammar, "10") and not accepts(grammar, "0.5")


def test_bounds_finer_than_the_decimals_still_have_values():
    narrow = {"type": "number", "minimum": 1e-12, "maximum": 2e-12}
    assert accepts(compiled(narrow), "0.0000000000015")
