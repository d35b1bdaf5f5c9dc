"""Calls of tools and reasoning that are held to a form, in C++ by xgrammar: see test_guided."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..runtime.tools.test_enforcement import SCHEMAS
from ..support.families import FAMILIES
from .obedient import Obedient, Refused, valid
from .programs import Program

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
TOOLS = [
    {"type": "function", "function": {"name": n, "parameters": s, "strict": True}}
    for n, s in SCHEMAS.items()
]


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield Obedient(program)


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = message.get("tool_calls") or []
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]


def check_calls(message: dict[str, Any]) -> None:
    calls = calls_of(message)
    assert calls, message
    for name, arguments in calls:
        valid(json.dumps(arguments), SCHEMAS[name])


@every_family
def test_calls_that_are_required(cpp, family):
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
        fields = {"tools": TOOLS, "max_tokens": 200, "parallel_tool_calls": False}
        choice = cpp.choice(fields, seed, family)
        if choice["finish_reason"] == "tool_calls":
            check_calls(choice["message"])


def test_a_tool_that_is_not_strict_may_have_any_schema(cpp):
    hermes = next(f for f in FAMILIES if f.name == "hermes")
    odd = {"type": "object", "properties": {"a": {"type": "array", "contains": {}}}}
    tool = {"type": "function", "function": {"name": "odd", "parameters": odd}}
    fields = {"tools": [tool], "tool_choice": "required", "max_tokens": 300}
    assert isinstance(cpp.choice(fields, 0, hermes)["message"], dict)
    with pytest.raises(Refused) as e:
        cpp.chunks(
            {**fields, "tools": [{**tool, "function": {**tool["function"], "strict": True}}]},
            0,
            hermes,
        )
    assert e.value.error["message"].endswith("not enforced here: properties.a.contains")
    assert e.value.error["param"] == "tools"


def test_reasoning_stays_free(cpp):
    hermes = next(f for f in FAMILIES if f.name == "hermes")
    fields = {"guided_choice": ["yes"], "max_tokens": 200}
    marks = "{# <think> </think> #}"
    opened = cpp.choice(fields, 1, hermes, thinks=marks + "<think>")
    if opened["finish_reason"] == "stop":
        assert opened["message"]["content"].strip() == "yes"
    closed = cpp.choice(fields, 1, hermes, thinks=marks + "<think></think>")
    assert closed["message"]["content"] == "yes"
    assert not closed["message"].get("reasoning_content")
