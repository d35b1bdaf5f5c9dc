"""What is enforced is enforced: random outputs are valid; what is not is refused by name."""

from __future__ import annotations

import json
import re
import time
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from wherry.errors import WherryError
from wherry.runtime.grammar import audit
from wherry.runtime.grammar.audit import SchemaProblems, Unsatisfiable, prepared
from wherry.runtime.grammar.expansion import EXPANDED
from wherry.runtime.grammar.layout import ONE_LINE

from .schemas import ENFORCED, REFUSED, decimals
from .walking import END, FEW, TOKENS, accepts, bytes_vocabulary, few_vocabulary, outputs, walk_of

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
    assert not (set(audit.ENFORCED) | EXPANDED) - names - {"additionalItems"}
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


DEFINED = (audit.REFUSED | EXPANDED) - {"disallow", "divisibleBy", "extends", "oneOf"}


@pytest.mark.parametrize(
    "keyword", sorted(DEFINED - {"dependencies", "$recursiveRef", "$recursiveAnchor"})
)
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
    schema = {"properties": {"a": {"contains": {}}, "b": {"uniqueItems": True}}, "extends": {}}
    with pytest.raises(SchemaProblems) as error:
        prepared(schema)
    assert len(error.value.lines) == 3


def test_the_library_s_switches_are_not_the_client_s():
    schema = {"x-guidance": {"lenient": True}, "type": "string", "maxLength": 1}
    assert "lenient" not in prepared(schema)


def test_layouts():
    schema = {"type": "object", "properties": {"a": {"const": [1, 2]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    compact = bytes_vocabulary().compile("json_schema", prepared(schema, ONE_LINE))
    assert set(outputs(compact, 5)) == {b'{"a": [1, 2]}'}
    loose = set(outputs(bytes_vocabulary().compile("json_schema", prepared(schema)), 20))
    assert len(loose) > 10 and all(json.loads(t) == {"a": [1, 2]} for t in loose)
    assert max(map(len, loose)) < 400  # no blanks for ever


NESTED = {"type": "array", "items": {"type": "object", "properties": {"a": {"enum": [[1], 2]}}}}


@pytest.mark.parametrize("indent", [None, 0, 1, 2, 4, "\t"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_white_space_as_models_write_it(indent, separators):
    """Compact and on lines, and none that could go on for longer."""
    grammar = bytes_vocabulary().compile("json_schema", prepared(NESTED))
    text = json.dumps([{"a": [1]}, {"a": 2}], indent=indent, separators=separators)
    if indent is not None:
        text = text.replace(" \n", "\n")
    assert accepts(grammar, text)
    windows = text.replace("\n", "\r\n")
    assert accepts(grammar, windows)
    for more in ("  ", "\n\n", "\n" + " " * 13, "\n" + "\t" * 4, "\n \t"):
        assert not accepts(grammar, "[" + more + "]")
        assert not accepts(grammar, '[{"a":' + more + "2}]")


# What a model that likes white space writes of `{"name": "x", "age": 3}` is bounded by its depth.
@pytest.mark.parametrize(
    ("schema", "most"),
    [
        ({"properties": {"name": {"const": "x"}, "age": {"const": 3}}}, 70),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"name": {"const": "x"}}}}}, 40),
        ({"items": {"const": 1}, "minItems": 2, "maxItems": 2, "type": "array"}, 30),
    ],
)
def test_a_model_that_likes_white_space_ends_soon(schema, most):
    names = [*schema.get("properties", schema.get("$defs", {}).get("a", {}).get("properties", {}))]
    closed = {"type": "object", "required": names, "additionalProperties": False}
    part = schema["$defs"]["a"] if "$defs" in schema else schema
    if names:
        part.update(closed)
    walk, written = walk_of(bytes_vocabulary().compile("json_schema", prepared(schema))), b""
    while END in (allowed := walk.allowed()) or allowed:
        token = next((t for t in b"\r\n\t " if t in allowed), allowed[0])
        written += TOKENS[token]
        if token == END or walk.accept(token):
            break
    json.loads(written)
    assert len(written) <= most, written


@pytest.mark.parametrize("kind", ["integer", "number", None, "draft 4"])
@pytest.mark.parametrize(
    "bound", [2**53, 2**53 + 1, 10**17 + 1, 123456789012345678, 2**63 - 1, 2**64, 1e22]
)
def test_bounds_beyond_doubles(kind, bound):
    """2^53 + 1 is no double; the library would compare it as 2^53."""
    allowed = {
        "minimum": lambda value, limit: value >= limit,
        "maximum": lambda value, limit: value <= limit,
        "exclusiveMinimum": lambda value, limit: value > limit,
        "exclusiveMaximum": lambda value, limit: value < limit,
    }
    for sign, (name, is_allowed) in product((1, -1), allowed.items()):
        limit = bound * sign
        schema = {name: limit} if kind is None else {"type": kind, name: limit}
        if kind == "draft 4":
            inclusive = name.replace("exclusiveM", "m")
            schema = {"type": "integer", name: True, inclusive: limit}
        try:
            grammar = bytes_vocabulary().compile("json_schema", prepared(schema))
        except SchemaProblems as e:
            assert abs(bound) > 2**53 and "cannot be enforced" in str(e)
            continue
        except WherryError as e:
            assert "Failed to generate" in str(e)
            continue
        near = [int(limit) + d for d in (-1025, -1024, -2, -1, 0, 1, 2, 1024, 1025)]
        taken = [value for value in near if accepts(grammar, str(value))]
        assert all(is_allowed(value, limit) for value in taken), (schema, taken)
        far = int(limit) // 2 * (1 if name.lower().endswith("maximum") == (sign > 0) else 4)
        if abs(far) < 10**18:
            assert accepts(grammar, str(far)), (schema, far)


def test_bounds_of_int64():
    schema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
    grammar = bytes_vocabulary().compile("json_schema", prepared(schema))
    assert accepts(grammar, str(2**63 - 1)) and not accepts(grammar, str(2**63))


@pytest.mark.parametrize("constant", [2**53, 2**53 + 2, 10**18, 2**63 - 1, -(2**60)])
def test_constants_beyond_doubles(constant):
    grammar = bytes_vocabulary().compile("json_schema", prepared({"enum": [[constant]]}))
    for value in (constant - 2, constant - 1, constant, constant + 1, constant + 2):
        assert accepts(grammar, f"[{value}]") == (value == constant)


CASES = json.loads((Path(__file__).parents[2] / "app" / "schema_cases.json").read_text())
WITH_ZEROS = {"-5.8"}  # from -5.821 on the library writes -5.80


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["name"])
def test_texts_that_are_allowed(row):
    """Rows that apps and browsers are held to, too; `server`: what it refuses and they enforce."""
    try:
        grammar = bytes_vocabulary().compile("json_schema", prepared(row["schema"]))
    except Unsatisfiable:
        assert "unenforced" in row and "valid" not in row
        return
    except SchemaProblems as e:
        refused = row.get("server", row.get("unenforced"))
        assert refused and all(re.search(r"#/(.*/)?[$]?\w+: ", line) for line in e.lines)
        return
    except WherryError:
        assert {"unenforced", "server"} & row.keys()
        return
    validator = Draft202012Validator(row["schema"])
    for text in {*row.get("valid", [])} - WITH_ZEROS:
        assert accepts(grammar, text), text
    for text in row.get("invalid", []):
        assert not accepts(grammar, text) or is_valid(validator, text), text


def is_valid(validator, text: str) -> bool:
    try:
        return validator.is_valid(json.loads(text))
    except ValueError:
        return False


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


LONG = {"x": {"not": {"enum": [*range(20_000)]}}}
WORDS = {"x": {"type": "string", "enum": [f"{i} of many words" for i in range(100)]}}
BIG = [f"{i}" * 20_000 for i in range(5)]
DEAR = {
    "copies": {"oneOf": [{"$ref": "#/$defs/x"}] * 70, "$defs": LONG},
    "expressions": {"oneOf": [{"$ref": "#/$defs/x"}] * 70, "$defs": WORDS},
    "lists": {"type": "array", "items": {"enum": BIG}, "uniqueItems": True},
    "names": {"oneOf": [{"required": [f"{i} {j}" for j in range(60)]} for i in range(300)]},
}


@pytest.mark.parametrize("name", DEAR)
def test_what_is_dear_to_turn_round(name):
    """What is refused is refused soon, and what is not is not much larger than it was."""
    started = time.process_time()
    with pytest.raises(SchemaProblems, match=r"oneOf|uniqueItems|no value is valid"):
        prepared(DEAR[name])
    assert time.process_time() - started < 3


@pytest.mark.parametrize("value", ["x", 3, None, []])
def test_not_a_schema(value):
    with pytest.raises(SchemaProblems, match="an object or a boolean"):
        prepared(value)


def test_leap_days():
    grammar = bytes_vocabulary().compile(
        "json_schema", prepared({"format": "date", "type": "string"})
    )

    def takes(text: str) -> bool:
        return accepts(grammar, json.dumps(text))

    for year in (1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9996):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert takes(f"{year:04}-02-29") == leap, year
        assert takes(f"{year:04}-02-28") and not takes(f"{year:04}-02-30")
    assert not takes("0000-01-01") and not takes("2023-04-31") and takes("2023-12-31")
