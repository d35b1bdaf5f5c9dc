"""The tables of requests through the module of pages, in Node, against Python's engine.

Both write what a row says, over cores that are none: what is compared stands above tokens.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wherry.runtime import MLCEngine

from ..app import guided_cases
from ..app.answers import answered, check_stream, fixed, meaning, refused, streamed
from ..app.request_cases import ANSWERS, ERRORS, GREEDY, STREAMS
from ..app.tool_answers import calls_in, joined_stream, without_ids
from ..app.tool_cases import CHATS, PLAIN, row
from ..app.tool_models import ScriptedModel

PROGRAM = Path(__file__).with_name("requests.mjs")
STORY = row(
    "Once upon a time the old 🦊 of 日本 went to the café. 🎉\n\n" + "So it was. " * 9, PLAIN
)
# What a grammar decides depends on the library, and on the model's own choice. An empty prompt
# needs a tokenizer that begins texts with a token.
LEFT_OUT = [*guided_cases.ANSWERS, {"prompt": "", **GREEDY}]
FREE = [request for request in ANSWERS if request not in LEFT_OUT]


def answers_of_page(compiled: Path, groups: list[dict[str, Any]]) -> Any:
    """What requests.mjs says of groups of requests."""
    done = subprocess.run(
        ["node", str(PROGRAM), str(compiled)],
        cwd=compiled.parent,
        input=json.dumps(groups),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def unnamed(request: dict[str, Any]) -> dict[str, Any]:
    """A request for the only model."""
    return {k: v for k, v in request.items() if k != "model"}


def model_of(case: dict[str, Any], model: ScriptedModel) -> dict[str, Any]:
    """A row's model for requests.mjs."""
    own = {"tool_format": case["tool_format"]} if "tool_format" in case else {}
    said = [*model.output, model.eos]
    tokenizer = json.loads(model.tokenizer.backend.to_str())
    return {"tokenizer": tokenizer, "template": case["template"], "said": said, **own}


@pytest.fixture(scope="module")
def engine():
    """Python's, whose model tells a story."""
    model = ScriptedModel(STORY)
    yield MLCEngine.of(model.loaded)
    model.close()


@pytest.fixture(scope="module")
def page(compiled):
    """What the page answers: to FREE, ERRORS and STREAMS."""
    model = ScriptedModel(STORY)
    rows = [*FREE, *ERRORS, *map(streamed, STREAMS)]
    (replies,) = answers_of_page(compiled, [{**model_of(STORY, model), "requests": rows}])
    model.close()
    answers, rest = replies[: len(FREE)], replies[len(FREE) :]
    return {"answers": answers, "errors": rest[: len(ERRORS)], "streams": rest[len(ERRORS) :]}


@pytest.mark.parametrize("i", range(len(FREE)))
def test_answers_are_pythons(page, engine, i):
    (answer,) = page["answers"][i]
    assert "error" not in answer, answer
    # JavaScript's objects have names like "0" first: of top_logprobs the order is another.
    assert json.loads(fixed(answer)) == json.loads(answered(engine, unnamed(FREE[i])))


@pytest.mark.parametrize("i", range(len(STREAMS)))
def test_streams_are_pythons(page, engine, i):
    check_stream(page["streams"][i], engine, unnamed(STREAMS[i]))


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_errors_mean_what_pythons_do(page, engine, i):
    (answer,) = page["errors"][i]
    assert meaning(answer) == meaning(refused(engine, unnamed(ERRORS[i])))


@pytest.fixture(scope="module")
def models():
    """Python's models of CHATS."""
    scripted = [ScriptedModel(case) for case in CHATS]
    yield scripted
    for model in scripted:
        model.close()


@pytest.fixture(scope="module")
def chats(compiled, models):
    """What the page answers to CHATS, each whole and as a stream."""
    groups = [
        {**model_of(case, model), "requests": [case["request"], streamed(case["request"])]}
        for case, model in zip(CHATS, models, strict=True)
    ]
    return answers_of_page(compiled, groups)


@pytest.mark.parametrize("i", range(len(CHATS)))
def test_calls_and_reasoning_are_pythons(chats, models, i):
    case, model = CHATS[i], models[i]
    (complete,), pieces = chats[i]
    expected = model.ask(**case["request"]).model_dump()
    assert "error" not in complete, complete
    assert without_ids(complete, case["said"]) == without_ids(expected, case["said"])
    if case["request"].get("n", 1) == 1:
        chunks = [c.model_dump() for c in model.ask(**streamed(case["request"]))]
        assert joined_stream(pieces) == joined_stream(chunks)
        assert calls_in(pieces) == calls_in(chunks)
