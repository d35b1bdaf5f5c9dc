"""What is enforced is enforced: random outputs are valid; what is not is refused by name."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from wherry.errors import WherryError
from wherry.runtime.grammar import audit
from wherry.runtime.grammar.audit import SchemaProblems, prepared

from .schemas import ENFORCED, REFUSED, decimals
from .walking import FEW, bytes_vocabulary, few_vocabulary, outputs, walk_of

FORMATS = Draft202012Validator.FORMAT_CHECKER


@pytest.mark.parametrize("name", ENFORCED)
def test_random_outputs_are_valid(name):
    schema = ENFORCED[name]
    validator = Draft202012Validator(decimals(schema), format_checker=FORMATS)
    grammar = bytes_vocabulary().compile("json_schema", prepared(schema))
    texts = outputs(grammar, 20)
    assert len(texts) >= 5
    for text in texts:
        instance = json.loads(text, parse_float=Decimal)
        errors = [e.message for e in validator.iter_errors(instance)]
        assert not errors, (text, errors)


NAMES = ["additionalProperties", "closed", "minProperties", "minProperties beyond required"]
NAMES += ["maxProperties", "patternProperties", "a property that may not be"]


@pytest.mark.parametrize("name", NAMES)
def test_valid_where_names_meet(name):
    """With few characters: names are written twice, and bounds are met."""
    schema = ENFORCED[name]
    grammar = few_vocabulary().compile("json_schema", prepared(schema))
    for text in outputs(grammar, 60, tokens=FEW):
        assert not list(Draft202012Validator(schema).iter_errors(json.loads(text))), text


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_enforced_is_named(name):
    schema, where = REFUSED[name]
    with pytest.raises(SchemaProblems) as error:
        prepared(schema)
    assert any(line.startswith(where + ": ") for line in error.value.lines), error.value.lines


def test_every_keyword_of_the_table_has_a_schema():
    names = {name for case in ENFORCED.values() for name in _keywords(case)}
    assert not set(audit.ENFORCED) - names - {"additionalItems", "not"}
    refused = {name for case, _ in REFUSED.values() for name in _keywords(case)}
    assert refused >= audit.REFUSED


def _keywords(value):
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from _keywords(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keywords(inner)


DEFINED = audit.REFUSED - {"disallow", "divisibleBy", "extends", "$recursiveAnchor"}


@pytest.mark.parametrize("keyword", sorted(DEFINED - {"dependencies", "$recursiveRef"}))
def test_the_library_refuses_what_the_table_refuses(keyword):
    """A version of the library that enforces more shows here, so that the table can follow."""
    values = {"$dynamicRef": "#", "$dynamicAnchor": "x", "uniqueItems": True}
    with pytest.raises(WherryError, match="nimplemented"):
        bytes_vocabulary().compile("json_schema", json.dumps({keyword: values.get(keyword, {})}))


def test_earlier_drafts():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "integer"}, {"const": "x"}],
        "additionalItems": {"type": "null"},
        "minItems": 3,
        "maxItems": 4,
    }
    for text in outputs(bytes_vocabulary().compile("json_schema", prepared(schema)), 10):
        assert not list(Draft7Validator(schema).iter_errors(json.loads(text))), text


def test_all_problems_at_once():
    schema = {"properties": {"a": {"not": {}}, "b": {"uniqueItems": True}}, "if": {}}
    with pytest.raises(SchemaProblems) as error:
        prepared(schema)
    assert len(error.value.lines) == 3


def test_the_library_s_switches_are_not_the_client_s():
    schema = {"x-guidance": {"lenient": True}, "type": "string", "maxLength": 1}
    assert "lenient" not in prepared(schema)


def test_layouts():
    schema = {"type": "object", "properties": {"a": {"const": [1, 2]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    compact = bytes_vocabulary().compile("json_schema", prepared(schema, None))
    assert set(outputs(compact, 5)) == {b'{"a": [1, 2]}'}
    loose = set(outputs(bytes_vocabulary().compile("json_schema", prepared(schema)), 20))
    assert len(loose) > 10 and all(json.loads(t) == {"a": [1, 2]} for t in loose)
    assert max(map(len, loose)) < 400  # no blanks for ever


def test_limits():
    deep = {}
    for _ in range(audit.MAX_DEPTH + 2):
        deep = {"items": deep}
    chain = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(5_000)}
    wide = {"anyOf": [{}] * (audit.MAX_SCHEMAS + 1)}
    for schema in (deep, {"$ref": "#/$defs/a0", "$defs": chain}, wide):
        with pytest.raises(SchemaProblems, match="too large"):
            prepared(schema)
    with pytest.raises(SchemaProblems, match="characters as JSON"):
        prepared({"description": "x" * audit.MAX_TEXT})


def test_a_union_that_is_dear_to_compare():
    """Time is bounded, whatever the client sends; what is not proven in it is refused."""
    parts = {"anyOf": [{"type": "integer"}] * 9}
    for _ in range(3):
        parts = {"allOf": [parts] * 3, "anyOf": [parts] * 3}
    started = time.process_time()
    with pytest.raises(SchemaProblems, match=r"oneOf"):
        prepared({"oneOf": [parts, {"type": "number"}]})
    tagged = [
        {"required": ["k"], "type": "object", "properties": {"k": {"const": i}}}
        for i in range(1000)
    ]
    with pytest.raises(SchemaProblems, match="oneOf"):
        prepared({"oneOf": tagged})
    assert time.process_time() - started < 5
    prepared({"oneOf": tagged[:100]})


@pytest.mark.parametrize("value", ["x", 3, None, []])
def test_not_a_schema(value):
    with pytest.raises(SchemaProblems, match="an object or a boolean"):
        prepared(value)


def test_leap_days():
    grammar = bytes_vocabulary().compile(
        "json_schema", prepared({"format": "date", "type": "string"})
    )

    def accepts(text: str) -> bool:
        walk = walk_of(grammar)
        for byte in json.dumps(text).encode():
            if byte not in walk.allowed():
                return False
            if walk.accept(byte):
                return True
        return False

    for year in (1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9996):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert accepts(f"{year:04}-02-29") == leap, year
        assert accepts(f"{year:04}-02-28") and not accepts(f"{year:04}-02-30")
    assert not accepts("0000-01-01") and not accepts("2023-04-31") and accepts("2023-12-31")
