"""Whole chats with tools, by the C++ of apps and by the engine with Python's libraries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wherry.errors import UsageError
from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.calls import check_tool_format

from ..support.families import NAMES
from .answers import meaning
from .programs import Program
from .tool_answers import calls_in, joined_stream, without_ids
from .tool_cases import CALL, CHATS, REFUSED, TWO, WORDS, row
from .tool_models import SPECIAL, ScriptedModel


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield program


def number(word: str) -> str | None:
    """What Python reads as a number, as JSON; only ASCII digits count, as in its source."""
    for read in (lambda: int(word, 0), lambda: int(word), lambda: float(word)):
        try:
            return json.dumps(read(), allow_nan=False) if word.isascii() else None
        except ValueError:
            continue
    return None


def test_numbers_in_pythons_words(cpp):
    for word in WORDS:
        try:
            json.loads(word)  # JSON's own numbers are not asked about
        except ValueError:
            assert cpp.ask(number=word)["number"] == number(word), word


class Both:
    """A chat by the engine and by apps, over one script."""

    def __init__(self, cpp: Program, case: dict[str, Any]) -> None:
        self._cpp, self.case = cpp, case
        self.model = ScriptedModel(case)

    def engine(self, **more: Any) -> Any:
        """Its answer, or the chunks of its stream."""
        return self.model.ask(**self.case["request"], **more)

    def cpp(self, **more: Any) -> dict[str, Any]:
        """The same, and the prompt."""
        return self._cpp.ask(
            tokenizer=self.model.tokenizer.backend.to_str(),
            template=self.case["template"],
            special=SPECIAL,
            eos=[self.model.eos],
            tool_format=self.case.get("tool_format", ""),
            output=self.model.output,
            request={**self.case["request"], **more},
        )


@pytest.mark.parametrize("case", CHATS, ids=range(len(CHATS)))
def test_chats_are_the_engines_byte_for_byte(cpp, case):
    both = Both(cpp, case)
    try:
        expected = both.engine().model_dump()
        answered = both.cpp()
        assert "error" not in answered, answered
        decode = both.model.tokenizer.decode
        assert decode(answered["prompt"], skip_special_tokens=False) == decode(
            both.model.prompt(), skip_special_tokens=False
        )
        (answer,) = answered["answer"]
        assert without_ids(json.loads(answer), case["said"]) == without_ids(expected, case["said"])
    finally:
        both.model.close()


@pytest.mark.parametrize("words", [[], [CALL], [CALL[:-30], CALL[-30:]]], ids=len)
def test_streams_of_calls(cpp, words):
    both = Both(cpp, row(f"<think>so</think>\nI look. {TWO}", Words=words, logprobs=True))
    try:
        expected = [c.model_dump() for c in both.engine(stream=True)]
    finally:
        both.model.close()
    chunks = [json.loads(c) for c in both.cpp(stream=True)["answer"]]
    assert joined_stream(chunks) == joined_stream(expected)
    assert calls_in(chunks) == calls_in(expected)
    assert len(chunks) > 30


@pytest.mark.parametrize("fields", REFUSED, ids=range(len(REFUSED)))
def test_errors_mean_what_pythons_do(cpp, fields):
    both = Both(cpp, row("x", **fields))
    try:
        with pytest.raises(UsageError) as e:
            both.engine()
    finally:
        both.model.close()
    assert isinstance(e.value, RequestError)
    expected = {"message": str(e.value), "type": "invalid_request_error", "param": e.value.param}
    assert meaning(both.cpp()) == meaning({"error": {**expected, "code": e.value.code}})


def test_a_family_that_is_none(cpp):
    both = Both(cpp, row("x"))
    both.model.close()
    both.case["tool_format"] = "nothing"
    with pytest.raises(UsageError) as e:
        check_tool_format("nothing")
    message = both.cpp()["error"]["message"]
    assert all(name in message and name in str(e.value) for name in NAMES)
