"""A random model that is held to calls: what it writes parses, and is valid, in every family."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema
import pytest

from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.calls import constraint_of_chat
from wherry.runtime.grammar.constraint import Constraint
from wherry.runtime.grammar.native import Walk

from ...support.families import FAMILIES, named
from ...support.readers import OutputParser, Thoughts, Tools, message_of
from ..grammar.walking import END, TOKENS, bytes_vocabulary, outputs, vocabulary, walk_of

SCHEMAS = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"enum": ["Oslo", "Rome"]},
            "note": {"type": "string"},
            "days": {"type": "integer", "minimum": 0, "maximum": 9},
            "wet": {"type": "boolean"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
THINK = Thoughts("<think>", "</think>")
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)


def function(name, parameters=None, *, strict=False, input=None):
    """A tool whose calls are constrained, as C++ describes it to the host."""
    return {"name": name, "parameters": parameters or {}, "strict": strict, "input": input}


FUNCTIONS = [function(n, s, strict=True) for n, s in SCHEMAS.items()]


@dataclass
class Enforcement:
    """The constraints of a chat's output."""

    family: Any
    thoughts: Thoughts | None
    opened: bool
    special: Callable[[str], int | None]

    def calls(self, tools, *, several):
        return self._constraint(tools, several=several, must=True)

    def text_or_calls(self, tools, *, several):
        return self._constraint(tools, several=several)

    def base_or_calls(self, base, tools=(), *, several=True):
        return self._constraint(tools, base, several=several)

    def _constraint(self, tools, base=None, *, several, must=False):
        family, thoughts = self.family, self.thoughts
        names = [*(family.markers + family.stops if family else ())]
        names += [thoughts.begin, thoughts.end] if thoughts else []
        ids = {name: self.special(name) for name in names}
        chat = {
            "family": family.name if family else None,
            "thoughts": [thoughts.begin, thoughts.end] if thoughts else None,
            "opened": self.opened,
            "must": must,
            "several": several,
            "special": {name: i for name, i in ids.items() if i is not None},
            "tools": [*tools],
        }
        return constraint_of_chat(chat, base)


def enforcement(family, thoughts=None, *, opened=False) -> Enforcement:
    return Enforcement(family, thoughts, opened, special)


# Harmony's marks are always special tokens.
SPECIALS = [name for name in named("harmony").markers]
FIRST = len(TOKENS)


@cache
def special_vocabulary():
    return vocabulary([*TOKENS, *(b"\xff" + name.encode() for name in SPECIALS)])


def special(name: str) -> int | None:
    return FIRST + SPECIALS.index(name) if name in SPECIALS else None


@cache
def compiled(constraint: Constraint):
    used = special_vocabulary() if f"<[{FIRST}" in constraint.text else bytes_vocabulary()
    return used.compile(constraint.kind, constraint.text)


def text_of(token: int) -> bytes:
    return TOKENS[token] if token < FIRST else SPECIALS[token - FIRST].encode()


def walk(grammar) -> Walk:
    return walk_of(grammar, size=FIRST + len(SPECIALS))


def random_outputs(grammar, family, count, seed, marks=()) -> list[bytes]:
    """What a random model writes that now and then writes one of the format's marks."""
    rng = random.Random(seed)
    marks = [m.encode() for m in (*family.markers, *marks) if m]
    marks = [] if family.channels else marks  # its marks are tokens, never text
    texts = (written(walk(grammar), rng, marks) for _ in range(count))
    return [text for text in texts if text is not None]


def written(at, rng, marks) -> bytes | None:
    out, planned = b"", b""
    for n in range(600):
        allowed = at.allowed()
        if allowed == [END] or (END in allowed and (n > 150 or rng.random() < 0.5)):
            return out
        if marks and not planned and len(allowed) > 150 and rng.random() < 0.3:
            planned = rng.choice(marks)
        if planned and planned[0] in allowed:
            token, planned = planned[0], planned[1:]
        else:
            planned = b""
            closing = [t for t in b'}]"0' if t in allowed and n > 100]
            shown = [t for t in allowed if 32 <= t < 127]
            marked = [t for t in allowed if t >= FIRST and rng.random() < 0.3]
            token = rng.choice(marked or closing or shown or [t for t in allowed if t != END])
        out += text_of(token)
        if at.accept(token):
            return out
    return None


def parsed(family, text: bytes, thoughts=None, *, opened=False, schemas=SCHEMAS):
    parser = OutputParser(family, Tools(schemas), thoughts, opened=opened)
    parts = parser.push(text.decode("utf-8", "replace")) + parser.finish()
    return message_of(parts)


def check(message, text):
    assert message.calls, text
    for call in message.calls:
        arguments = json.loads(call.arguments)
        jsonschema.validate(arguments, SCHEMAS[call.name])


@every_family
def test_calls_are_valid(family):
    grammar = compiled(enforcement(family).calls(FUNCTIONS, several=True))
    texts = random_outputs(grammar, family, 12, 3)
    assert len(texts) > 5
    for text in texts:
        message = parsed(family, text)
        check(message, text)
        assert message.text == "", text
    assert {c.name for t in texts for c in parsed(family, t).calls} == set(SCHEMAS)


@every_family
def test_one_call(family):
    grammar = compiled(enforcement(family).calls(FUNCTIONS[:1], several=False))
    for text in random_outputs(grammar, family, 5, 4):
        message = parsed(family, text)
        check(message, text)
        assert [c.name for c in message.calls] == ["get_weather"]


@every_family
def test_reasoning_comes_first_and_is_free(family):
    if family.channels:
        return
    grammar = compiled(enforcement(family, THINK, opened=True).calls(FUNCTIONS[1:], several=False))
    at, out = walk(grammar), b""
    for byte in b"so { <tool </thin?</think>":
        assert byte in at.allowed()
        at.accept(byte)
        out += bytes([byte])
    rest = written(at, random.Random(0), [b"</think>"])
    assert rest is not None
    out += rest
    message = parsed(family, out, THINK, opened=True)
    assert message.reasoning == "so { <tool </thin?"
    check(message, out)


@every_family
def test_among_text_calls_alone_are_constrained(family):
    """tool_choice "auto" with strict tools: words are free; from a begin mark on it is a call."""
    if family.channels:
        return
    begins = family.begins
    grammar = compiled(enforcement(family).text_or_calls(FUNCTIONS, several=True))
    walk = walk_of(grammar)
    for byte in b"some words, then: ":
        assert byte in walk.allowed()
        walk.accept(byte)
    assert END in walk.allowed()
    if family.bare:
        return
    for byte in begins[0].encode():
        assert byte in walk.allowed()
        walk.accept(byte)
    assert b"~"[0] not in walk.allowed()
    assert END not in walk.allowed()


def test_bare_calls_or_words():
    grammar = compiled(enforcement(named("llama")).text_or_calls(FUNCTIONS, several=True))
    assert b"H"[0] in walk_of(grammar).allowed()
    walk = walk_of(grammar)
    for byte in b'{"name": "':
        assert byte in walk.allowed()
        walk.accept(byte)
    assert {chr(t) for t in walk.allowed()} == {"g", "n"}


@pytest.mark.parametrize("name", ["pythonic", "llama", "json"])
def test_words_may_begin_as_reasoning_does(name):
    at = walk_of(compiled(enforcement(named(name), THINK).text_or_calls(FUNCTIONS, several=True)))
    for byte in b"<thx":
        assert byte in at.allowed()
        at.accept(byte)
        assert END in at.allowed()


def test_harmony_among_channels():
    family = named("harmony")
    grammar = compiled(enforcement(family).text_or_calls(FUNCTIONS, several=True))
    at = walk(grammar)
    begun = ["<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>", "assistant"]
    for text in (*begun, "<|channel|>"):
        for token in [special(text)] if text in SPECIALS else text.encode():
            assert token in at.allowed(), text
            at.accept(token)
    assert {chr(t) for t in at.allowed()} == {"a", "c", "f"}


def test_a_schema_after_reasoning():
    base = Constraint("json_schema", json.dumps({"const": [1]}), "response_format")
    enforced = enforcement(None, THINK, opened=True).base_or_calls(base)
    walk = walk_of(compiled(enforced))
    for byte in b"hm</think>[1]":
        assert byte in walk.allowed()
        walk.accept(byte)
    assert enforcement(None).base_or_calls(base) is base
    enforced = enforcement(None, THINK).base_or_calls(base)
    assert {chr(t) for t in walk_of(compiled(enforced)).allowed()} == {"<", "["}


@pytest.mark.parametrize(
    "base",
    [
        Constraint("regex", "a/b|\\d+", "guided_regex"),
        Constraint("lark", 'start: "a" x\nx: "/b"', "grammar"),
        Constraint("json_schema", json.dumps({"const": "a/b"}), "response_format"),
    ],
)
def test_a_constraint_or_calls(base):
    """Tools with another constraint: the output is either."""
    enforced = enforcement(named("hermes")).base_or_calls(base, FUNCTIONS, several=False)
    assert enforced.param == base.param
    texts = outputs(compiled(enforced), 40, seed=1)
    calls = [t for t in texts if t.startswith(b"<tool_call>")]
    assert calls and len(calls) < len(texts)
    for text in calls:
        check(parsed(named("hermes"), text), text)


def test_what_cannot_be_enforced():
    schema = {"type": "object", "properties": {"a": {"type": "array", "contains": {}}}}
    strict = function("f", schema, strict=True)
    with pytest.raises(RequestError, match=r"tools\[0\].*'f'.*#/properties/a/contains") as e:
        enforcement(named("hermes")).calls([strict], several=True)
    assert e.value.code == "unsupported_schema"
    lax = function("f", schema)
    for name in ("hermes", "qwen-coder", "pythonic", "gemma", "glm"):
        family = named(name)
        grammar = compiled(enforcement(family).calls([lax], several=False))
        for text in random_outputs(grammar, family, 4, 2):
            (call,) = parsed(family, text, schemas={"f": schema}).calls
            assert isinstance(json.loads(call.arguments), dict), text
    pattern = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}}
    strict = function("f", pattern, strict=True)
    with pytest.raises(RequestError, match="pattern"):
        enforcement(named("qwen-coder")).calls([strict], several=True)
    enforcement(named("hermes")).calls([strict], several=True)


A = {"a": {"type": "string"}}
ONE_BY_ONE = [
    ({"properties": A, "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
    ({"properties": A, "not": {"required": ["a"]}}, "not"),
    ({"properties": A, "anyOf": [{"required": ["a"]}, {"maxProperties": 0}]}, "anyOf"),
    ({"properties": A, "required": ["b"], "additionalProperties": {}}, "required"),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": A, "required": ["a"]}}}, r"\$ref"),
]
OUTSIDE_OF_JSON = [
    ({"properties": {"a": {"type": "string", "not": {"const": "x"}}}}, "not"),
    ({"properties": {"a": {"enum": ["x", "y"], "not": {"const": "x"}}}}, "not"),
    ({"properties": {"a": {"anyOf": [{"type": "string", "maxLength": 1}]}}}, "maxLength"),
]


CASES = [(name, *case) for name in ("qwen-coder", "pythonic", "gemma") for case in ONE_BY_ONE] + [
    ("qwen-coder", *case) for case in OUTSIDE_OF_JSON
]


@pytest.mark.parametrize("name, schema, keyword", CASES)
def test_what_is_enforced_in_json_alone(name, schema, keyword):
    """Where arguments are written one by one, nothing that is said of them is left out."""
    strict = function("f", schema, strict=True)
    enforcement(named("hermes")).calls([strict], several=True)
    with pytest.raises(RequestError, match=rf"{keyword}: not enforced"):
        enforcement(named(name)).calls([strict], several=True)
    lax = function("f", schema)
    enforcement(named(name)).calls([lax], several=True)


def test_definitions_that_each_argument_repeats_have_a_limit():
    numbers = {f"n{i}": {"type": "integer", "description": f"{i:060}"} for i in range(2000)}
    properties = {f"a{i}": {"$ref": f"#/$defs/n{i}"} for i in range(40)}
    tool = function("f", {"properties": properties, "$defs": numbers}, strict=True)
    with pytest.raises(RequestError, match=r"tools\[0\].*\$defs: the schemas .* have more than"):
        enforcement(named("qwen-coder")).calls([tool], several=True)


def test_nothing_is_added_to_an_object_that_is_left_open():
    functions = [
        function("now"),
        function("f", {"properties": {"a": {"const": 1}}}),
    ]
    family = named("hermes")
    grammar = compiled(enforcement(family).calls(functions, several=False))
    texts = random_outputs(grammar, family, 30, 5)
    calls = [parsed(family, text, schemas={}).calls[0] for text in texts]
    assert {(c.name, "".join(c.arguments.split())) for c in calls} == {
        ("now", "{}"),
        ("f", "{}"),
        ("f", '{"a":1}'),
    }


def test_marks_that_are_special_tokens():
    ids = {"<tool_call>": 256}
    enforced = Enforcement(named("hermes"), None, False, ids.get)
    text = enforced.calls(FUNCTIONS[1:], several=False).text
    assert "<[256]>" in text
    assert '"<tool_call>' not in text
    free = enforced.text_or_calls(FUNCTIONS[1:], several=True).text
    assert "lazy" not in free
