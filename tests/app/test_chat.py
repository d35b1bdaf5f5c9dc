"""The demo model over the C ABI of apps, against Python's engine on the same compiled folder."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine

from ..support.endless import endless_demo
from . import guided_cases
from .answers import answered, check_stream, fixed, meaning, refused, streamed, with_template
from .app import App
from .request_cases import (
    ANSWERS,
    ASK,
    ERRORS,
    GREEDY,
    STREAMS,
    TEMPLATE_ANSWERS,
    TEMPLATE_ERRORS,
)

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(ensure_artifact("demo", target="cpu"))


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[App]:
    opened = App(folder)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[MLCEngine]:
    with MLCEngine(folder) as opened:
        yield opened


@pytest.mark.parametrize("row", range(len(ANSWERS)))
def test_answers_are_pythons_byte_for_byte(app, engine, row):
    assert fixed(app.ask(**ANSWERS[row])) == answered(engine, ANSWERS[row])


@pytest.mark.parametrize("row", range(len(STREAMS)))
def test_streams(app, engine, row):
    check_stream(app.all(app.start(**streamed(STREAMS[row]))), engine, STREAMS[row])


def test_sixteen_at_once_answer_as_one_alone(app):
    requests = [
        {"messages": [{"role": "user", "content": f"Number {i}"}], "temperature": 0.7, "seed": i,
         "max_tokens": 16 + i}
        for i in range(16)
    ]  # fmt: skip
    alone = [app.ask(**request) for request in requests]
    started = [app.start(**request) for request in requests]
    together = [app.all(number)[-1] for number in started]
    assert [fixed(a) for a in together] == [fixed(a) for a in alone]


def test_abort_frees_pages(tmp_path):
    app = App(endless_demo(tmp_path))
    number = app.start(messages=ASK, stream=True, temperature=0)
    app.chunks(number, 4)
    assert app.stats()["running"] == 1
    assert app.abort(number) == "ok "
    assert app.all(number)[-1]["error"]["code"] == "aborted"
    wait_until_idle(app)
    assert app.abort(number).startswith("error")
    app.close()


def wait_until_idle(app: App) -> None:
    for _ in range(200):
        stats = app.stats()
        if stats["requests"] == 0 and stats["pages_free"] == stats["pages_total"]:
            return
        time.sleep(0.02)
    raise AssertionError(stats)


def test_trim_forgets_prefixes(app):
    app.ask(messages=ASK, **GREEDY)
    assert app.stats()["pages_cached"] > 0
    assert app.command("trim") == "ok "
    assert app.stats()["pages_cached"] == 0


def resident(app: App) -> float:
    """Megabytes of the program that are in memory."""
    status = Path(f"/proc/{app.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1000


@pytest.mark.nightly
def test_trim_returns_memory_to_the_system(folder):
    """The cache of 1,500 conversations, and what the C library keeps of freed memory."""
    app = App(folder, max_batch=4)
    texts = [f"Number {i}: tell me of {i * 7919 % 1000} foxes and {i} hens." for i in range(1500)]

    def chat(text: str) -> None:
        message = {"role": "user", "content": text}
        assert "choices" in app.ask(messages=[message], max_tokens=8, temperature=0)

    for text in texts[:20]:
        chat(text)
    assert app.command("trim") == "ok "
    start = resident(app)
    for text in texts:
        chat(text)
    full = resident(app)
    assert app.command("trim") == "ok "
    assert resident(app) - start < 10 < full - start, (start, full, resident(app))
    chat(texts[0])  # pages that were returned can be used again
    app.close()


def test_the_cache_is_bounded_by_bytes(folder, app):
    memory = read_manifest(folder).memory["kv_per_token"] * 1000
    bounded = App(folder, kv_memory=memory)
    stats, unbounded = bounded.stats(), app.stats()
    tokens = stats["pages_total"] * stats["page_size"]
    assert (
        1000 - stats["page_size"]
        < tokens
        <= 1000
        < unbounded["pages_total"] * unbounded["page_size"]
    )
    assert stats["context"] <= tokens
    assert "choices" in bounded.ask(messages=ASK, **GREEDY)
    bounded.close()


def test_the_prompt(app, engine):
    rendered = app.command("render " + json.dumps({"messages": ASK})).removeprefix("ok ")
    template = engine.loaded.template
    assert rendered == template.render(ASK).split("\n")[0]


def test_a_closed_app_ends_its_requests(folder):
    app = App(folder)
    for _ in range(3):
        app.start(messages=ASK, temperature=0, ignore_eos=True, stream=True)
    app.close()


ANSWER_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "friends": {"type": "array", "items": {"enum": ["fox", "owl"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.skipif(not guided_cases.available(), reason="built without xgrammar")
def test_answers_fit_their_schemas(app):
    """What the demo model writes at temperature 1."""
    started = [
        app.start(
            messages=ASK, response_format=guided_cases.schema(ANSWER_SCHEMA), seed=i, max_tokens=160
        )
        for i in range(6)
    ]
    choices = [app.all(number)[-1]["choices"][0] for number in started]
    complete = [c["message"]["content"] for c in choices if c["finish_reason"] == "stop"]
    assert complete
    for text in complete:
        jsonschema.validate(json.loads(text), ANSWER_SCHEMA)


def test_tokens_are_not_spent_on_white_space(engine):
    """Of Python's engine, where JSON may be written on several lines; here it has one line."""
    short = {"properties": {"name": {"type": "string", "maxLength": 20}, "age": {"enum": [3, 30]}}}
    closed = {"type": "object", "required": ["name", "age"], "additionalProperties": False, **short}
    spent = 0
    for seed in range(4):
        answer = engine.chat.completions.create(
            messages=ASK, response_format=guided_cases.schema(closed), seed=seed, max_tokens=120
        )
        assert answer.choices[0].finish_reason == "stop"
        spent += answer.usage.completion_tokens
    assert spent <= 280  # about 170; up to 40 blanks a line made it 400


@pytest.mark.parametrize("row", range(len(ERRORS)))
def test_errors_mean_what_pythons_do(app, engine, row):
    assert meaning(app.ask(**ERRORS[row])) == meaning(refused(engine, ERRORS[row]))


def test_templates_are_pythons(folder, tmp_path):
    """Of the table that browsers are held to, too: through requests, on a model that has them."""
    model = with_template(folder, tmp_path / "model")
    app = App(model)
    with MLCEngine(model) as engine:
        for request in TEMPLATE_ERRORS:
            assert app.ask(**request) == refused(engine, request)
        for request in TEMPLATE_ANSWERS:
            assert fixed(app.ask(**request)) == answered(engine, request)
    app.close()


def test_what_is_no_json(app):
    app.say("x1 {")
    assert app.all("x1")[-1]["error"]["code"] == "invalid_json"


def test_a_model_without_its_tower_reads_text(folder, tmp_path):
    model = with_template(folder, tmp_path / "model")
    (model / "wherry-vision.json").write_text("{}")
    app = App(model)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    error = app.ask(messages=[{"role": "user", "content": [image]}])["error"]
    assert error["code"] == "unsupported_content"
    assert error["param"] == "messages[0].content[0].type"
    assert "this model reads text, and no images" in error["message"]
    app.close()
