"""Answers that are held to a form, in C++: by xgrammar, where Python's engine has llguidance.

What both answer alike is in guided_cases.py. Here a random model obeys the masks: what it writes is
what the grammar is.
"""

from __future__ import annotations

import json
import os
import random
import re
from typing import Any

import jsonschema
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from wherry.runtime.tools.families import FAMILIES, GENERIC

from ..runtime import small_tokenizers
from ..runtime.grammar.schemas import ENFORCED
from ..runtime.tools.test_chats import PLAIN
from ..runtime.tools.test_enforcement import SCHEMAS
from .guided_cases import TAG, schema
from .programs import Program

ALL = list({f.name: f for f in (*FAMILIES, GENERIC)}.values())
every_family = pytest.mark.parametrize("family", ALL, ids=lambda f: f.name)
ASK = [{"role": "user", "content": "x"}]
TOOLS = [
    {"type": "function", "function": {"name": n, "parameters": s, "strict": True}}
    for n, s in SCHEMAS.items()
]


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield Obedient(program)


class Obedient:
    """A small model that draws any token that its mask allows."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def chunks(
        self, request: dict[str, Any], seed: int, family: Any = None, thinks: str = "", **more: Any
    ) -> list[Any]:
        """Its answer, or what is streamed. `thinks`: what the prompt ends with."""
        signs = "" if family is None else "{{ tools }}{# " + "\n".join(family.signs) + " #}"
        tokens = more.get("tokens") or tokenizer(family)
        asked = self._program.ask(
            tokenizer=tokens.to_str(),
            template=PLAIN + signs + thinks,
            eos=[tokens.token_to_id("</s>")],
            tool_format="" if family is None else family.name,
            seed=seed,
            vocab_size=tokens.get_vocab_size(),
            request={"messages": ASK, **request},
        )
        if "error" in asked:
            error = asked["error"]
            if "without xgrammar" in error["message"]:
                if os.environ.get("WHERRY_REQUIRE_XGRAMMAR"):
                    pytest.fail(error["message"])
                pytest.skip(error["message"])
            raise Refused(error)
        return [json.loads(chunk) for chunk in asked["answer"]]

    def choice(self, request: dict[str, Any], seed: int, family: Any = None, **more: Any) -> Any:
        """Of its answer the only one."""
        (answer,) = self.chunks(request, seed, family, **more)
        return answer["choices"][0]

    def text(self, request: dict[str, Any], seed: int) -> str:
        """What it writes; "" if it did not come to an end."""
        choice = self.choice(request, seed)
        return choice["message"]["content"] if choice["finish_reason"] == "stop" else ""

    def refusal(self, **request: Any) -> dict[str, Any]:
        """The error of a request."""
        with pytest.raises(Refused) as e:
            self.chunks(request, 0)
        return e.value.error


class Refused(Exception):
    """The request's error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


_MADE: dict[str, Tokenizer] = {}


def tokenizer(family: Any) -> Tokenizer:
    """Bytes, some pieces of JSON, and the marks of a family, which are special where they are."""
    name = "" if family is None else family.name
    if name not in _MADE:
        made = small_tokenizers.byte_level()
        marks = [] if family is None else [*family.format.markers, *family.stops]
        made.add_special_tokens([AddedToken(m, special=True) for m in marks if "<" in m])
        _MADE[name] = made
    return _MADE[name]


def valid(value: Any, against: Any) -> None:
    jsonschema.Draft202012Validator(against).validate(value)


OPEN_TO_APPS = {
    name: value
    for name, value in ENFORCED.items()
    if not re.search(
        r"minLength|maxLength|pattern|exclusive|multipleOf|minProperties|maxProperties|allOf|"
        r"oneOf|format|additionalItems|anchor|uniqueItems",
        json.dumps(value),
    )
}


# Of these the library reads only a part, or nothing: refused.
IN_PARTS = {"reference", "anyOf beside properties", "escaped pointer", "a property that may not be"}


@pytest.mark.parametrize("name", sorted(set(OPEN_TO_APPS) - IN_PARTS))
def test_schemas(cpp, name):
    """Of those that Python's engine enforces, all that have no other keywords."""
    check_schema(cpp, ENFORCED[name], range(3))


def check_schema(cpp: Obedient, value: Any, seeds: range) -> None:
    for seed in seeds:
        text = cpp.text({"response_format": schema(value)}, seed)
        if text:
            valid(json.loads(text), value)


def test_keywords_that_are_not_enforced_are_refused_by_name(cpp):
    """In the words of the package for browsers."""
    value = {"properties": {"tags": {"type": "array", "uniqueItems": True, "not": {}}}}
    error = cpp.refusal(response_format=schema(value))
    assert error["message"] == (
        "The schema has keywords that are not enforced here: "
        "properties.tags.uniqueItems, properties.tags.not"
    )
    assert error["param"] == "response_format.json_schema.schema"
    assert error["code"] == "unsupported_schema"


@pytest.mark.parametrize("name", sorted({*ENFORCED} - {*OPEN_TO_APPS} | IN_PARTS))
def test_other_keywords_are_refused(cpp, name):
    error = cpp.refusal(response_format=schema(ENFORCED[name]))
    assert error["code"] in ("unsupported_schema", "invalid_grammar")


def few() -> Tokenizer:
    """Few characters: names meet each other."""
    alphabet = [*small_tokenizers.SPECIALS, *'{}[]:,"ab01-', "Ġ", "\\"]
    vocab = {c: i for i, c in enumerate(alphabet)}
    made = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(small_tokenizers.SPECIALS)
    return made


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
        asked = {"response_format": schema(MEETING[row]), "max_tokens": 60}
        choice = cpp.choice(asked, seed, tokens=few())
        if choice["finish_reason"] == "stop":
            valid(json.loads(choice["message"]["content"]), MEETING[row])


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
    ("value", "wanted"),
    [
        ({"enum": ["a", 1, None], "type": ["string", "null"]}, {"a", None}),
        ({"const": 2.0, "type": "integer"}, {2.0}),
        ({"type": "string", "enum": ["x"], "description": "y"}, {"x"}),
    ],
)
def test_constants_of_a_type(cpp, value, wanted):
    texts = {cpp.text({"response_format": schema(value)}, seed) for seed in range(8)}
    assert {json.loads(text) for text in texts} == wanted


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


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = message.get("tool_calls") or []
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]


def check_calls(message: dict[str, Any]) -> None:
    made = calls_of(message)
    assert made, message
    for name, arguments in made:
        valid(arguments, SCHEMAS[name])


@every_family
def test_calls_that_are_asked_for(cpp, family):
    """As each family writes them; its own reader reads them."""
    for seed in range(2):
        choice = cpp.choice({"tools": TOOLS, "tool_choice": "required"}, seed, family)
        if choice["finish_reason"] == "tool_calls":
            check_calls(choice["message"])
        else:
            assert choice["finish_reason"] == "length"
    named = {"type": "function", "function": {"name": "now"}}
    choice = cpp.choice({"tools": TOOLS, "tool_choice": named}, 0, family)
    assert calls_of(choice["message"]) == [("now", {})]
    assert choice["finish_reason"] == "stop"


@every_family
def test_calls_of_a_strict_tool_amid_text(cpp, family):
    for seed in range(3):
        asked = {"tools": TOOLS, "max_tokens": 200, "parallel_tool_calls": False}
        choice = cpp.choice(asked, seed, family)
        if choice["finish_reason"] == "tool_calls":
            check_calls(choice["message"])


def test_a_tool_that_is_not_strict_may_have_any_schema(cpp):
    hermes = next(f for f in ALL if f.name == "hermes")
    odd = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}}
    tool = {"type": "function", "function": {"name": "odd", "parameters": odd}}
    asked = {"tools": [tool], "tool_choice": "required", "max_tokens": 300}
    assert isinstance(cpp.choice(asked, 0, hermes)["message"], dict)
    with pytest.raises(Refused) as e:
        cpp.chunks(
            {**asked, "tools": [{**tool, "function": {**tool["function"], "strict": True}}]},
            0,
            hermes,
        )
    assert e.value.error["message"].endswith("not enforced here: properties.a.pattern")
    assert e.value.error["param"] == "tools"


def test_reasoning_stays_free(cpp):
    hermes = next(f for f in ALL if f.name == "hermes")
    asked = {"guided_choice": ["yes"], "max_tokens": 200}
    marks = "{# <think> </think> #}"
    opened = cpp.choice(asked, 1, hermes, thinks=marks + "<think>")
    if opened["finish_reason"] == "stop":
        assert opened["message"]["content"].strip() == "yes"
    closed = cpp.choice(asked, 1, hermes, thinks=marks + "<think></think>")
    assert closed["message"]["content"] == "yes"
    assert not closed["message"].get("reasoning_content")


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
        bounds = {"minimum": low, "maximum": high}
        return {"type": kind, **{k: v for k, v in bounds.items() if rng.random() < 0.5}}
    if depth == 0 or kind in ("string", "boolean", "null"):
        return {"type": rng.choice([kind, [kind, "null"]]) if kind != "any" else "string"}
    if kind == "any":
        return {"anyOf": [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}
    if kind == "array":
        counts = sorted(rng.randrange(4) for _ in range(2))
        made: dict[str, Any] = {"type": "array", "items": random_schema(rng, depth - 1)}
        if rng.random() < 0.3:
            made["prefixItems"] = [
                random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 3))
            ]
        return {**made, "minItems": counts[0], "maxItems": counts[1] + 1}
    names = rng.sample(NAMES, rng.randrange(len(NAMES)))
    made = {"type": "object", "properties": {n: random_schema(rng, depth - 1) for n in names}}
    made["required"] = [n for n in names if rng.random() < 0.6]
    if rng.random() < 0.8:
        made["additionalProperties"] = rng.choice([False, False, random_schema(rng, depth - 1)])
    return made


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
    whole = 0
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
            valid(json.loads(text), value)
            whole += 1
    assert whole > count // 4


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_schemas_that_are_none(cpp, seed):
    """Values of any type where keywords have theirs: an answer or an error, each time."""
    rng = random.Random(seed)
    words = ["type", "properties", "items", "enum", "const", "$ref", "$defs", "required", "anyOf"]
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
