"""The C++ readers of calls and reasoning, and whole chats with tools, against Python's."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from wherry.errors import UsageError
from wherry.runtime.errors import RequestError
from wherry.runtime.tools.families import FAMILIES, NAMES, family_of, named
from wherry.runtime.tools.format import Tools
from wherry.runtime.tools.parts import CallArguments, CallBegin, CallEnd, Part, Text, joined
from wherry.runtime.tools.python_text import _of_word

from ..runtime.tools.slips import SLIPS
from ..runtime.tools.test_reading import HELD, TOOLS, parser_of, slipped
from ..runtime.tools.written import WRITTEN, Written
from .answers import meaning
from .programs import Program
from .tool_answers import calls_in, joined_stream, without_ids
from .tool_cases import CALL, CHATS, REFUSED, TWO, WORDS, row
from .tool_models import SPECIAL, ScriptedModel

every_model = pytest.mark.parametrize("w", WRITTEN, ids=lambda w: w.model)


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield program


def as_json(part: Part, output: str) -> dict[str, Any]:
    """A part; ids that the output does not have are made up."""
    if isinstance(part, CallBegin):
        call_id = part.id if part.id in output else ""
        return {"kind": "begin", "index": part.index, "name": part.name, "id": call_id}
    if isinstance(part, CallEnd):
        return {"kind": "end", "index": part.index, "whole": part.whole}
    if isinstance(part, CallArguments):
        return {"kind": "arguments", "index": part.index, "text": part.text}
    return {"kind": "text" if isinstance(part, Text) else "reasoning", "text": part.text}


def read_by_python(
    w: Written, pieces: list[str], most: int | None, tools: Tools = TOOLS
) -> dict[str, Any]:
    parser = parser_of(w, tools, most=most)
    parts, done = [], []
    for piece in pieces:
        parts.append([as_json(p, w.output) for p in joined(parser.push(piece))])
        done.append(parser.done)
    parts.append([as_json(p, w.output) for p in joined(parser.finish())])
    return {"parts": parts, "done": done}


def read_by_cpp(
    cpp: Program, w: Written, pieces: list[str], most: int | None, tools: Tools = TOOLS
) -> dict[str, Any]:
    marks = "\n".join(w.signs)
    opened = w.prompt.rstrip().endswith(("<think>", "[THINK]"))
    asked = {
        "family": w.family,
        "tools": tools.schemas,
        "held": tools.held,
        "marks": marks,
        "opened": opened,
        "most": most,
    }
    made = cpp.ask(read=asked, pieces=pieces)
    for parts in made["parts"]:
        for part in parts:
            if part.get("id", "") not in w.output:
                assert len(part["id"]) in (9, 29)
                part["id"] = ""
    return made


def check(
    cpp: Program, w: Written, pieces: list[str], most: int | None = None, tools: Tools = TOOLS
) -> None:
    """Piece by piece the same parts."""
    pieces = [p for p in pieces if p]
    wanted = read_by_python(w, pieces, most, tools)
    assert read_by_cpp(cpp, w, pieces, most, tools) == wanted, pieces


def cut(rng: random.Random, text: str, times: int) -> list[str]:
    cuts = sorted(rng.sample(range(len(text) + 1), min(times, len(text))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]


@every_model
def test_what_models_write(cpp, w):
    rng = random.Random(w.model)
    check(cpp, w, [w.output])
    check(cpp, w, list(w.output))
    check(cpp, w, list(w.output), 1)
    for _ in range(3):
        check(cpp, w, cut(rng, w.output, 5))
        check(cpp, w, [w.output[: rng.randrange(len(w.output))]])
        check(cpp, w, ["Well: {1} [2] <3> ```\n \n", *cut(rng, w.output, 9), " so\n"])


@pytest.mark.parametrize("slip", SLIPS, ids=lambda s: f"{s.family}, {s.what}")
def test_slips(cpp, slip):
    rng, w = random.Random(slip.what), slipped(slip)
    for pieces in ([w.output], list(w.output), cut(rng, w.output, 4), cut(rng, w.output, 9)):
        check(cpp, w, pieces)
        check(cpp, w, pieces, tools=HELD)
    check_damaged(cpp, w, 0, 4)


def check_damaged(cpp: Program, w: Written, seed: int, times: int) -> None:
    """Spans left out, written twice or replaced."""
    rng = random.Random(f"{w.model} {seed}")
    junk = ["", '"', "}", "{", "]", "<", "\\", "\n", "x", "'", *named(w.family).format.markers]
    for _ in range(times):
        a, b = sorted(rng.sample(range(len(w.output) + 1), 2))
        b = rng.choice([b, min(b, a + 3)])
        middle = rng.choice([rng.choice(junk), w.output[a:b] * 2])
        damaged = w._replace(output=w.output[:a] + middle + w.output[b:])
        check(cpp, damaged, cut(rng, damaged.output, rng.choice([0, 4, 40])))


@every_model
def test_damaged_calls(cpp, w):
    check_damaged(cpp, w, 0, 8)


PIECES = [
    *["<think>", "</think>", "get_weather", "now", "functions.", '{"name": "now"', "1", "NaN", "é"],
    *[
        ', "arguments": ',
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        '"',
        "'",
        "\\",
        ":",
        "call:",
        "city",
        "=",
        ",",
    ],
    *[
        "=",
        ",",
        ";",
        " ",
        "\n",
        "```json",
        "text",
        "\\u",
        "00e9",
        "\\ud83d",
        "\\x4",
        "<parameter=city>",
        "-",
    ],
    *["</parameter>", "<arg_key>", "</arg_key>", "<arg_value>", "\N{IDEOGRAPHIC SPACE}", "True"],
]


def check_junk(cpp: Program, family: str, seed: int, times: int) -> None:
    """Pieces of the format in any order."""
    rng = random.Random(f"{family} {seed}")
    form = named(family).format
    words = [*form.markers, *form.begins, *PIECES]
    for _ in range(times):
        output = "".join(rng.choices(words, k=rng.randrange(1, 25)))
        w = Written("", family, ("</think>",), rng.choice(["", "<think>"]), output)
        check(cpp, w, cut(rng, output, rng.choice([0, 3, 60])), rng.choice([None, None, 1, 2]))


@pytest.mark.parametrize("family", NAMES)
def test_junk(cpp, family):
    check_junk(cpp, family, 0, 25)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 6))
def test_much_junk(cpp, seed):
    for family in NAMES:
        check_junk(cpp, family, seed, 400)
    for w in WRITTEN:
        check_damaged(cpp, w, seed, 150)


def test_families(cpp):
    templates = ["\n".join(f.signs) for f in FAMILIES] + ["\n".join(w.signs) for w in WRITTEN]
    for template in [*templates, "nothing"]:
        found = family_of(template)
        wanted = {"family": found.name, "example": found.format.example}
        assert cpp.ask(family=template) == wanted


def test_numbers_in_pythons_words(cpp):
    for word in WORDS:
        wanted = _of_word(word)
        made = cpp.ask(number=word)["number"]
        if wanted.startswith('"') or word == "None":
            assert made is None, word
        elif wanted != word:  # JSON's own are not asked about
            assert made == wanted, word


def test_the_cost_of_a_long_call(cpp):
    """A call of 32 KB that comes in 8000 tokens."""
    text = '<tool_call>{"name": "now", "arguments": {"a": "' + "abc " * 8000 + '"}}</tool_call>'
    w = Written("", "hermes", (), "", text)
    pieces = [text[i : i + 4] for i in range(0, len(text), 4)]
    parts = read_by_cpp(cpp, w, pieces, None)["parts"]
    assert (
        "".join(p["text"] for ps in parts for p in ps if "text" in p)
        == (text[text.index('{"a"') : text.index("}</tool_call>")])
    )


class Both:
    """A chat by Python's engine and by C++'s, over one script."""

    def __init__(self, cpp: Program, case: dict[str, Any]) -> None:
        self._cpp, self.case = cpp, case
        self.model = ScriptedModel(case)

    def python(self, **more: Any) -> Any:
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
def test_chats_are_pythons_byte_for_byte(cpp, case):
    both = Both(cpp, case)
    try:
        wanted = both.python().model_dump()
        made = both.cpp()
        assert "error" not in made, made
        decode = both.model.tokenizer.decode
        assert decode(made["prompt"], skip_special_tokens=False) == decode(
            both.model.prompt(), skip_special_tokens=False
        )
        (answer,) = made["answer"]
        assert without_ids(json.loads(answer), case["said"]) == without_ids(wanted, case["said"])
    finally:
        both.model.close()


@pytest.mark.parametrize("words", [[], [CALL], [CALL[:-30], CALL[-30:]]], ids=len)
def test_streams_of_calls(cpp, words):
    both = Both(cpp, row(f"<think>so</think>\nI look. {TWO}", Words=words, logprobs=True))
    try:
        wanted = [c.model_dump() for c in both.python(stream=True)]
    finally:
        both.model.close()
    made = [json.loads(c) for c in both.cpp(stream=True)["answer"]]
    assert joined_stream(made) == joined_stream(wanted)
    assert calls_in(made) == calls_in(wanted)
    assert len(made) > 30


@pytest.mark.parametrize("fields", REFUSED, ids=range(len(REFUSED)))
def test_errors_mean_what_pythons_do(cpp, fields):
    both = Both(cpp, row("x", **fields))
    try:
        with pytest.raises(UsageError) as e:
            both.python()
    finally:
        both.model.close()
    assert isinstance(e.value, RequestError)
    wanted = {"message": str(e.value), "type": "invalid_request_error", "param": e.value.param}
    assert meaning(both.cpp()) == meaning({"error": {**wanted, "code": e.value.code}})


def test_a_family_that_is_none(cpp):
    both = Both(cpp, row("x"))
    both.model.close()
    both.case["tool_format"] = "nothing"
    with pytest.raises(UsageError) as e:
        named("nothing")
    made = both.cpp()["error"]["message"]
    assert all(name in made and name in str(e.value) for name in NAMES)
