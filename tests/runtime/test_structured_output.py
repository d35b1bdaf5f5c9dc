"""Structured output from a request to its answer; the core is a stand-in that obeys the masks."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from wherry.errors import UsageError
from wherry.runtime import MLCEngine, RequestError, create_app
from wherry.runtime.grammar import compiler
from wherry.runtime.grammar.constraint import Constraint
from wherry.runtime.grammar.native import Walk

SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
RESPONSE_FORMAT = {"type": "json_schema", "json_schema": {"name": "trip", "schema": SCHEMA}}
USER = [{"role": "user", "content": "x"}]


class Obedient:
    """Draws any token that a request's mask allows, ends rather than goes on."""

    def __init__(self, vocab_size: int = 1024) -> None:
        self._walks: dict[int, tuple[Walk, object]] = {}
        self._vocab_size = vocab_size

    def __call__(self, prompt, params, n):
        if n == 0:
            walk = Walk(params.grammar.mask(params.stop_ids), self._vocab_size)
            self._walks[id(params)] = (walk, params)
        walk, _ = self._walks[id(params)]
        allowed = walk.allowed()
        ends = [t for t in params.stop_ids if t in allowed]
        return random.Random(params.seed + n).choice(ends or allowed)

    def accept(self, params, token) -> bool:
        """As the core does: the output ends with the token that completes the grammar."""
        return self._walks[id(params)][0].accept(token)


@pytest.fixture
def model(make):
    return make(script=Obedient())


def test_a_schema(model):
    engine = MLCEngine.of(model)
    for seed in range(5):
        answer = engine.chat.completions.create(
            messages=USER, response_format=RESPONSE_FORMAT, seed=seed
        )
        trip = json.loads(answer.choices[0].message.content)
        assert trip["city"] in ("Oslo", "Rome") and trip["days"] <= 9
        assert answer.choices[0].finish_reason == "stop"


def test_a_stream_and_several_choices(model):
    engine = MLCEngine.of(model)
    answer = engine.chat.completions.create(messages=USER, guided_choice=["no", "yes"], n=8, seed=1)
    assert {c.message.content for c in answer.choices} == {"no", "yes"}
    stream = engine.completions.create(prompt="x", guided_regex="[ab]{5}", stream=True)
    assert len("".join(c.choices[0].text for c in stream)) == 5


def test_a_grammar_is_compiled_once(model, monkeypatch):
    compiled = []
    plain = compiler.GrammarCompiler._compile

    def counted(self, constraint: Constraint):
        compiled.append(constraint)
        return plain(self, constraint)

    monkeypatch.setattr(compiler.GrammarCompiler, "_compile", counted)
    engine = MLCEngine.of(model)
    for _ in range(3):
        engine.chat.completions.create(messages=USER, guided_regex="a")
        with pytest.raises(RequestError, match="look-around"):
            engine.chat.completions.create(messages=USER, guided_regex="(?=a)b")
    assert [c.text for c in compiled] == ["a"]  # the wrong one did not even come here
    for i in range(compiler.KEPT):
        engine.chat.completions.create(messages=USER, guided_regex=f"b{i}")
    engine.chat.completions.create(messages=USER, guided_regex="a")
    assert len(compiled) == compiler.KEPT + 2


def test_what_cannot_be_enforced_is_a_400_that_names_it(model):
    schema = {"properties": {"tags": {"type": "array", "uniqueItems": True}}}
    response_format = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    client = TestClient(create_app(MLCEngine.of(model)), base_url="http://localhost")
    body = {"messages": USER, "response_format": response_format}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert "#/properties/tags/uniqueItems" in error["message"]
    assert error["param"] == "response_format.json_schema.schema"
    assert error["code"] == "unsupported_schema"


def test_a_bomb_is_a_400_and_the_server_goes_on(model):
    client = TestClient(create_app(MLCEngine.of(model)), base_url="http://localhost")
    chain = "\n".join(f'r{i}: "a" r{i + 1}' for i in range(3_000))
    bomb = f"start: r0\n{chain}\nr3000: X\nX: " + "/a?/ " * 5_000
    answers = [
        client.post("/v1/chat/completions", json={"messages": USER, **fields})
        for fields in ({"guided_grammar": bomb}, {"guided_regex": "a"})
    ]
    assert [a.status_code for a in answers] == [400, 200]
    assert answers[0].json()["error"]["param"] == "guided_grammar"


def test_the_package_is_missing(model, monkeypatch):
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Exception, match="pip install llguidance"):
        MLCEngine.of(model).chat.completions.create(messages=USER, guided_regex="a")


def test_a_text_that_cannot_end_is_an_error(model):
    with pytest.raises(UsageError, match="cannot be enforced"):
        MLCEngine.of(model).chat.completions.create(messages=USER, guided_regex="a&b(")


@pytest.mark.cpu
def test_the_example_of_the_server_s_page_answers_what_it_says(capsys):
    page = (Path(__file__).parents[2] / "docs" / "server.md").read_text()
    example = next(b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "json_schema" in b)
    with MLCEngine("demo", progress=None) as engine:
        code = example.replace('OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")', "own")
        exec(code, {"own": engine})
    assert capsys.readouterr().out.strip() == example.rpartition("# ")[2].strip()
