"""Answers that are held to a form, in C++: by xgrammar, where Python's engine has llguidance.

What both answer alike is in guided_cases.py. Here a random model obeys the masks: what it writes is
what the grammar is. Calls of tools are in test_guided_tools, random schemas in test_guided_random.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ..runtime import small_tokenizers
from ..runtime.grammar.schemas import ENFORCED, REFUSED
from .guided_cases import TAG, schema
from .obedient import Obedient, Refused, valid
from .programs import Program
from .test_schema_cases import ROWS


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield Obedient(program)


@pytest.mark.parametrize("name", sorted(ENFORCED))
def test_schemas(cpp, name):
    """All that Python's engine enforces."""
    check_schema(cpp, ENFORCED[name], range(1))


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(ENFORCED))
def test_schemas_often(cpp, name):
    check_schema(cpp, ENFORCED[name], range(1, 25))


@pytest.mark.nightly
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_schemas_as_they_are_written(cpp, row):
    if "unenforced" not in row and "draft-07" not in json.dumps(row["schema"]):
        check_schema(cpp, row["schema"], range(25))


def check_schema(cpp: Obedient, value: Any, seeds: range) -> None:
    for seed in seeds:
        text = cpp.text({"response_format": schema(value)}, seed)
        if text:
            valid(text, value)


def test_keywords_that_are_not_enforced_are_refused_by_name(cpp):
    tags = {"type": "array", "uniqueItems": True, "items": {"contains": {}}}
    error = cpp.refusal(response_format=schema({"properties": {"tags": tags}, "extends": {}}))
    assert error["message"] == "The schema has keywords that are not enforced here: extends"
    error = cpp.refusal(response_format=schema({"properties": {"tags": tags}}))
    assert error["message"] == (
        "The schema has keywords that are not enforced here: properties.tags.items.contains"
    )
    assert error["param"] == "response_format.json_schema.schema"
    assert error["code"] == "unsupported_schema"


# What the server refuses and apps enforce, or may not even say.
APPS_ONLY = {"propertyNames", "not an integer", "not a long text", "not a reference with others"}
APPS_ONLY |= {"not what refers to itself", "oneOf that may overlap", "dependentRequired of many"}
APPS_ONLY |= {
    "inside of dependentSchemas",
    "uniqueItems of many constants",
    "a control character",
}
APPS_ONLY |= {"a constant beyond doubles", "constants beyond doubles", "maxProperties"}
APPS_ONLY |= {"class operators", "nested class"}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_the_server_refuses(cpp, name):
    """Apps refuse it, too, or hold to it."""
    value = REFUSED[name][0]
    if name in APPS_ONLY:
        if name != "not what refers to itself":  # for the validator a circle
            check_schema(cpp, value, range(1))
    else:
        error = cpp.refusal(response_format=schema(value))
        assert error["code"] in ("unsupported_schema", "invalid_grammar")


def few() -> Tokenizer:
    """Few characters: names meet each other."""
    alphabet = [*small_tokenizers.SPECIALS, *'{}[]:,"ab01-', "Ġ", "\\"]
    vocab = {c: i for i, c in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(small_tokenizers.SPECIALS)
    return tokenizer


MEETING = [
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "ab": {"type": "null"}, "": {"const": 1}},
        "additionalProperties": {"type": "array", "items": False},
    },
    {"properties": {"b": {"type": "array"}, "a": {"type": "integer"}}, "required": ["aa", "b"]},
]


@pytest.mark.parametrize("row", range(len(MEETING)))
def test_valid_where_names_meet(cpp, row):
    """A name that the schema has is not written again as one that may be added."""
    for seed in range(40):
        fields = {"response_format": schema(MEETING[row]), "max_tokens": 60}
        choice = cpp.choice(fields, seed, tokens=few())
        if choice["finish_reason"] == "stop":
            valid(choice["message"]["content"], MEETING[row])


ALIKE = {
    "type": "object",
    "properties": {
        "x": {"type": "object", "properties": {"title": {"const": 1}}, "required": ["title"]},
        "y": {"type": "object", "properties": {"title": {"const": 2}}, "required": ["title"]},
        "z": {"anyOf": [{"const": {"default": 3}}, {"const": {"default": 4}}]},
    },
    "required": ["x", "y", "z"],
}


def test_schemas_that_differ_in_what_is_named_like_a_note(cpp):
    """xgrammar by itself gives y the schema of x."""
    closed = json.loads(
        json.dumps(ALIKE).replace('"required"', '"additionalProperties": false, "required"')
    )
    seen = set()
    for seed in range(6):
        value = json.loads(cpp.text({"response_format": schema(closed)}, seed))
        assert (value["x"], value["y"]) == ({"title": 1}, {"title": 2})
        seen.add(value["z"]["default"])
    assert seen == {3, 4}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"enum": ["a", 1, None], "type": ["string", "null"]}, {"a", None}),
        ({"const": 2.0, "type": "integer"}, {2.0}),
        ({"type": "string", "enum": ["x"], "description": "y"}, {"x"}),
    ],
)
def test_constants_of_a_type(cpp, value, expected):
    texts = {cpp.text({"response_format": schema(value)}, seed) for seed in range(8)}
    assert {json.loads(text) for text in texts} == expected


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [(r"[a-c]{2,20}(\d|é+)?", 0), (r"(?:ab|c)*x.[^x]", 0), (r"\w+\s\S{3}", re.ASCII)],
)
def test_regular_expressions(cpp, pattern, flags):
    for seed in range(3):
        text = cpp.text({"guided_regex": pattern}, seed)
        assert not text or re.fullmatch(pattern, text, flags)


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", r"\bword", "a^b", r"(a)\1", "(", "[", r"\p{L}", "a$b"]
)
def test_expressions_that_are_not_understood(cpp, pattern):
    error = cpp.refusal(guided_regex=pattern)
    assert error["code"] == "invalid_grammar" and error["param"] == "guided_regex"
    assert error["message"].startswith("guided_regex cannot be enforced: ")


def test_grammars(cpp):
    gbnf = 'root ::= item ("," item)*\nitem ::= "x" [0-9]+ | "(" root ")"'
    for seed in range(3):
        text = cpp.text({"guided_grammar": gbnf}, seed)
        assert not text or re.fullmatch(r"[x0-9(),]+", text)
    lark = 'start: "a" %json {"enum": [1, 2]} B\nB: /b+/'
    for seed in range(3):
        text = cpp.text({"grammar": lark}, seed)
        assert not text or re.fullmatch(r"a[12]b+", text)
    for bad in ("root ::= (", "root ::= missing", "start: missing", "start ("):
        assert cpp.refusal(grammar=bad)["code"] == "invalid_grammar"


def test_structural_tags(cpp):
    for seed in range(4):
        choice = cpp.choice({"response_format": TAG, "max_tokens": 60}, seed)
        text = choice["message"]["content"]
        rest = re.sub(r"<f>-?(0|[1-9]\d*)</f>", "", text)
        assert "<f" not in rest or choice["finish_reason"] == "length"


DOUBLED = "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(300))
CHAIN = "\n".join(f'r{i}: "a"? r{i + 1}' for i in range(2000))
MANY = {"type": "array", "minItems": 100_000}
ROUND = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
BOMBS = [
    {"guided_regex": "((((a?){50}){50}){50}){50}"},
    {"guided_regex": "(a|aa|aaa)*" * 200},
    {"guided_regex": "(" * 3000 + "a" + ")" * 3000},
    {"guided_grammar": "root ::= " + "(" * 7000 + '"a"' + ")" * 7000},
    {"guided_grammar": f'root ::= r0\n{DOUBLED}\nr300 ::= "a"'},
    {"guided_grammar": 'root ::= root root root | "a" | ""'},
    {"guided_grammar": f"start: r0\n{CHAIN}\nr2000: /a?/"},
    {"response_format": schema({"enum": [f"{i}x" * 20 for i in range(4000)]})},
    {"response_format": schema({**MANY, "items": MANY})},
    {"response_format": schema({"properties": {f"p{i}": {"type": "string"} for i in range(3000)}})},
    {"response_format": schema({"$ref": "#"})},
    {"response_format": schema({"$defs": ROUND, "$ref": "#/$defs/a"})},
]


@pytest.mark.parametrize("row", range(len(BOMBS)))
def test_bombs_end(cpp, row):
    """With an answer or an error, in a time that is bounded, and the program goes on."""
    try:
        cpp.chunks({**BOMBS[row], "max_tokens": 20}, 0)
    except Refused as e:
        assert e.error["code"] in ("invalid_grammar", "unsupported_schema")
    assert cpp.text({"guided_choice": ["ok"]}, 0) == "ok"
