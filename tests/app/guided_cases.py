"""Requests whose answers are held to something: rows for Python, C++ and Kotlin.

In `ANSWERS` the grammar decides all that is not the model's own choice between a few texts, so that
engines with different libraries (llguidance, xgrammar) answer alike, byte for byte.
"""

from __future__ import annotations

import os
from typing import Any

from wherry.packager import xgrammar

Request = dict[str, Any]
ASK = [{"role": "user", "content": "Tell me a story about a fox."}]
GREEDY = {"temperature": 0, "max_tokens": 80}
OPEN = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
CLOSED = {
    "type": "object",
    "properties": {
        "animal": {"enum": ["fox", "cat"]},
        "old": {"const": True},
        "in": {"type": "object", "properties": {"x": {"const": "b c"}}, "required": ["x"],
               "additionalProperties": False},
    },
    "required": ["animal", "old", "in"],
    "additionalProperties": False,
}  # fmt: skip
ON_ONE_LINE = {"json": CLOSED, "disable_any_whitespace": True}
TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}],
    "triggers": ["<f"],
}


def available() -> bool:
    """Whether the programs of apps were built with what holds answers to a form."""
    installed = xgrammar.requirement().installed is not None
    assert installed or not os.environ.get("WHERRY_REQUIRE_XGRAMMAR"), xgrammar.requirement().fix
    return installed


def schema(value: Any) -> dict[str, Any]:
    """A response_format."""
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": value}}


ANSWERS: list[Request] = [
    {"messages": ASK, "guided_choice": ["a fox"], **GREEDY},
    {"messages": ASK, "guided_choice": ["no", "yes", "yes, a fox"], **GREEDY, "n": 2},
    {"messages": ASK, "guided_choice": ["ä🦊", 'quote " and \\', "a\nb"], "seed": 3},
    {"messages": ASK, "guided_choice": ["", "x"], "seed": 1},
    {"messages": ASK, "guided_regex": "^It is [0-9]{3}$", **GREEDY},
    {"messages": ASK, "guided_regex": "(one|two|three) (fox(es)?|cats?)", "seed": 5},
    {"messages": ASK, "guided_regex": "[a-c]{4,40}", "seed": 6, "max_tokens": 30},
    {"messages": ASK, "response_format": {"type": "regex", "pattern": "é{2}"}, **GREEDY},
    {"prompt": "A fox is", "structured_outputs": {"regex": "x+y"}, "max_tokens": 5, "seed": 2},
    {"prompt": ["A", "B"], "structured_outputs": {"choice": ["red", "blue"]}, **GREEDY},
    {"messages": ASK, "response_format": schema({"const": 42}), **GREEDY},
    {"messages": ASK, "response_format": schema({"enum": ["a", "b", 1, None]}), **GREEDY},
    {"messages": ASK, "json_schema": {"const": 'x"y'}, **GREEDY},
    {"messages": ASK, "guided_json": '{"enum": [true, false]}', **GREEDY},
    {"messages": ASK, "structured_outputs": ON_ONE_LINE, **GREEDY},
    {"messages": ASK, "structured_outputs": ON_ONE_LINE, "temperature": 2, "seed": 9},
    {"messages": ASK, "structured_outputs": ON_ONE_LINE, **GREEDY, "logprobs": True},
    {"messages": ASK, "grammar": 'root ::= ("ab" | "c")+ "."', "seed": 4, "max_tokens": 40},
    {"messages": ASK, "guided_grammar": 'start: "x" NUMBER\nNUMBER: /[0-9]{2}/', "seed": 4},
    {"messages": ASK, "grammar": 'root ::= "' + "(" * 120 + '" # ' + "[" * 120, **GREEDY},
    {"messages": ASK, "guided_choice": ["a fox"], "ignore_eos": True, "temperature": 0},
    {"messages": ASK, "response_format": {"type": "text"}, "guided_choice": ["a fox"], **GREEDY},
]

ERRORS: list[Request] = [
    {"messages": ASK, "response_format": 5, "structured_outputs": "x", "guided_regex": 1},
    {"messages": ASK, "guided_json": 5},
    {"messages": ASK, "json_schema": "x", "guided_choice": [1, "a", None], "grammar": []},
    {"messages": ASK, "response_format": {}},
    {"messages": ASK, "response_format": {"type": "xml"}},
    {"messages": ASK, "response_format": {"type": "json_schema"}},
    {"messages": ASK, "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
    {"messages": ASK, "response_format": {"type": "regex"}},
    {"messages": ASK, "response_format": schema([1, 2])},
    {"messages": ASK, "response_format": schema(1.5)},
    {"messages": ASK, "guided_json": "{bad"},
    {"messages": ASK, "guided_json": '"text"'},
    {"messages": ASK, "guided_choice": []},
    {"messages": ASK, "guided_choice": ["a"], "guided_regex": "b"},
    {"messages": ASK, "response_format": {"type": "json_object"}, "grammar": "root ::= x"},
    {"messages": ASK, "structured_outputs": {}},
    {"messages": ASK, "structured_outputs": {"regex": "a", "choice": ["b"]}},
    {"messages": ASK, "structured_outputs": {"xml": 1, "json": {}}},
    {"messages": ASK, "structured_outputs": {"regex": ["🦊" * 100]}},
    {"messages": ASK, "guided_regex": "a" * 9000},
    {"messages": ASK, "guided_grammar": "root ::= x\n" * 9000},
    {"messages": ASK, "guided_regex": "a\u0000b"},
    {"messages": ASK, "grammar": "root ::= " + "(" * 2000 + '"a"' + ")" * 2000},
    {"messages": ASK, "guided_grammar": "start: " + "[" * 101 + '"a" /[/' + "]" * 101},
    {"prompt": "x", "guided_choice": "x"},
    {"messages": ASK, "response_format": {**TAG, "triggers": []}},
    {"messages": ASK, "response_format": {**TAG, "triggers": ["<g"]}},
    {"messages": ASK, "response_format": {"type": "structural_tag"}},
    {"messages": ASK, "response_format": {**TAG, "structures": [1]}},
]
