"""From requests to constraints: every name that clients use, and what is wrong with a value."""

from __future__ import annotations

import json
import random

import pytest

from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.fields import FIELDS, MAX_REGEX, constraint_of
from wherry.runtime.host.request import checked

from .walking import END, TOKENS, bytes_vocabulary, outputs, walk_of

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": [1, 2]}},
    "required": ["a"],
    "additionalProperties": False,
}
GBNF = 'root ::= "x" ("a" | [0-9])+ "y"'
LARK = 'start: "x" /[a0-9]/+ "y"'
IS_A = [{"a": 1}, {"a": 2}]


def constraint_of_fields(**fields):
    checked("chat", {"messages": [{"role": "user", "content": "x"}], **fields})
    return constraint_of({name: fields.get(name) for name in FIELDS})


def texts(constraint, count=12):
    grammar = bytes_vocabulary().compile(constraint.kind, constraint.text)
    return [t.decode() for t in outputs(grammar, count)]


JSON = [
    {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "strict": False, "schema": SCHEMA},
        }
    },
    {"response_format": {"type": "json_object", "schema": SCHEMA}},
    {"guided_json": SCHEMA},
    {"guided_json": json.dumps(SCHEMA)},
    {"structured_outputs": {"json": SCHEMA}},
    {"structured_outputs": {"json": SCHEMA, "disable_any_whitespace": True, "regex": None}},
    {"structured_outputs": {"json": SCHEMA, "whitespace_pattern": " "}},
    {"json_schema": SCHEMA},
]


@pytest.mark.parametrize("fields", JSON, ids=str)
def test_schemas(fields):
    outputs_seen = texts(constraint_of_fields(**fields))
    assert outputs_seen and all(json.loads(t) in IS_A for t in outputs_seen)


def test_json_is_on_one_line_by_default():
    one_line = [f for f in JSON if "whitespace_pattern" not in f.get("structured_outputs", ())]
    for fields in one_line:
        assert set(texts(constraint_of_fields(**fields))) == {'{"a": 1}', '{"a": 2}'}
    fields = {"structured_outputs": {"json": SCHEMA, "disable_any_whitespace": False}}
    outputs_seen = texts(constraint_of_fields(**fields), 40)
    assert any("\n" in text for text in outputs_seen) and all(
        json.loads(t) in IS_A for t in outputs_seen
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"json_object": True}},
        {"json_schema": {"type": "object"}},
    ],
    ids=str,
)
def test_json_objects(fields):
    outputs_seen = texts(constraint_of_fields(**fields))
    assert outputs_seen and all(isinstance(json.loads(t), dict) for t in outputs_seen)


@pytest.mark.parametrize(
    "fields",
    [
        {"guided_regex": "^[ab]{2}\\$$"},
        {"structured_outputs": {"regex": "[ab]{2}\\$"}},
        {"response_format": {"type": "regex", "pattern": "[ab]{2}\\$"}},
    ],
    ids=str,
)
def test_regular_expressions(fields):
    assert {t[2:] for t in texts(constraint_of_fields(**fields))} == {"$"}


@pytest.mark.parametrize(
    "fields",
    [{"guided_choice": ["a|b", "c.*", "日本\n"]}, {"structured_outputs": {"choice": ["a|b"]}}],
)
def test_choices(fields):
    assert set(texts(constraint_of_fields(**fields), 40)) <= {"a|b", "c.*", "日本\n"}


@pytest.mark.parametrize("grammar", [GBNF, LARK])
@pytest.mark.parametrize("field", ["guided_grammar", "grammar", "structured", "format"])
def test_grammars(grammar, field):
    fields = {
        "structured": {"structured_outputs": {"grammar": grammar}},
        "format": {"response_format": {"type": "grammar", "grammar": grammar}},
    }.get(field, {field: grammar})
    outputs_seen = texts(constraint_of_fields(**fields))
    assert outputs_seen and all(t[0] == "x" and t[-1] == "y" and len(t) > 2 for t in outputs_seen)


def test_no_constraint():
    assert constraint_of_fields() is None
    assert constraint_of_fields(response_format={"type": "text"}) is None


TAG = {
    "type": "structural_tag",
    "structures": [
        {"begin": "<f=x>", "schema": SCHEMA, "end": "</f>"},
        {"begin": "<f=y>", "schema": {"const": 7}, "end": "</f>"},
    ],
    "triggers": ["<f="],
}


def test_structural_tags():
    """Free text; from a trigger on, a tag and its schema; then free text again."""
    constraint = constraint_of_fields(response_format=TAG)
    assert constraint == constraint_of_fields(
        structured_outputs={"structural_tag": json.dumps(TAG)}
    ) or (
        constraint.text
        == constraint_of_fields(structured_outputs={"structural_tag": json.dumps(TAG)}).text
    )
    grammar = bytes_vocabulary().compile(constraint.kind, constraint.text)
    walk = walk_of(grammar)
    for byte in b"any { text <f<f=":
        assert byte in walk.allowed()
        walk.accept(byte)
    assert {TOKENS[t][:1] for t in walk.allowed()} == {b"x", b"y"}
    for byte in b"y>7":
        walk.accept(byte)
    assert bytes(walk.forced(20)) == b"</f>"
    for byte in b"</f>more":
        assert byte in walk.allowed()
        walk.accept(byte)
    assert END in walk.allowed()
    for byte in b"<f=x>{":
        assert byte in walk.allowed()
        walk.accept(byte)
    assert END not in walk.allowed()


def test_a_trigger_that_is_a_special_token():
    tag = {
        "type": "structural_tag",
        "structures": [{"begin": "<|end|>", "schema": {"const": 1}, "end": "."}],
        "triggers": ["<|end|>"],
    }
    constraint = constraint_of({"response_format": tag}, lambda name: name == "<|end|>")
    walk = walk_of(bytes_vocabulary().compile(constraint.kind, constraint.text), ())
    for byte in b"<|end|> as text":
        walk.accept(byte)
    walk.accept(END)
    assert bytes(walk.forced(5)) == b"1."


def test_free_text_holds_no_broken_tag():
    rng = random.Random(0)
    constraint = constraint_of_fields(response_format=TAG)
    grammar = bytes_vocabulary().compile(constraint.kind, constraint.text)
    for _ in range(30):
        walk, out = walk_of(grammar), b""
        for byte in b"<f=":
            walk.accept(byte)
        for _ in range(80):
            token = rng.choice([t for t in walk.allowed() if t != END] or [END])
            if token == END or walk.accept(token):
                break
            out += TOKENS[token]
        assert out[:2] in (b"x>", b"y>")


WRONG = [
    ({"response_format": {"type": "xml"}}, "response_format.type", "'xml'; it takes"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "schema"),
    ({"response_format": {}}, "response_format.type", "None"),
    ({"guided_choice": []}, "guided_choice", "at least one"),
    ({"guided_json": "{"}, "guided_json", "not JSON"),
    ({"guided_json": "3"}, "guided_json", "an object or a boolean"),
    ({"guided_grammar": "root ::= ("}, "guided_grammar", "cannot be read"),
    ({"guided_regex": "a" * (MAX_REGEX + 1)}, "guided_regex", "8193 characters"),
    ({"guided_regex": "a\0b"}, "guided_regex", r"U\+0000"),
    ({"guided_regex": "\ud800"}, "guided_regex", "surrogate"),
    ({"structured_outputs": {}}, "structured_outputs", "exactly one of"),
    ({"structured_outputs": {"json": {}, "regex": "a"}}, "structured_outputs", "exactly one of"),
    ({"structured_outputs": {"jason": {}}}, "structured_outputs", "exactly one of"),
    ({"structured_outputs": {"regex": 3}}, "structured_outputs.regex", "takes a text"),
    (
        {"structured_outputs": {"json": {}, "whitespace_pattern": 1}},
        "structured_outputs.whitespace_pattern",
        "takes a text",
    ),
    ({"guided_regex": "a", "grammar": "b"}, "guided_regex, grammar", "several"),
    ({"response_format": {"type": "structural_tag"}}, "response_format", "structures"),
    (
        {"response_format": {**TAG, "triggers": ["<g="]}},
        "response_format",
        "no trigger begins",
    ),
    (
        {"response_format": {**TAG, "structures": [{"begin": "<f=", "schema": {"contains": {}}}]}},
        "response_format",
        "structures.0..schema#/contains",
    ),
    (
        {"response_format": {**TAG, "structures": [{"begin": "<f=\ud800"}]}},
        "response_format.structures[0].begin",
        "surrogate",
    ),
    (
        {"json_schema": {"properties": {"a": {"contains": {}}}}},
        "json_schema",
        "#/properties/a/contains: contains",
    ),
]


@pytest.mark.parametrize("fields, param, message", WRONG, ids=lambda v: str(v)[:40])
def test_what_is_wrong_is_named(fields, param, message):
    with pytest.raises(RequestError, match=message) as error:
        constraint_of_fields(**fields)
    assert error.value.param == param
