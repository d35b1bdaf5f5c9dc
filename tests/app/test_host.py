"""The table of requests through libwherry_host, with the server's own libraries as services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine

from . import guided_cases
from .answers import answered, check_stream, fixed, meaning, refused, streamed, with_template
from .host import Host
from .request_cases import ANSWERS, ASK, ERRORS, STREAMS, TEMPLATE_ANSWERS, TEMPLATE_ERRORS
from .tool_answers import without_ids
from .tool_cases import CHATS
from .tool_models import folders

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(ensure_artifact("demo", target="cpu"))


@pytest.fixture(scope="module")
def host(folder: Path) -> Iterator[Host]:
    made = Host(folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[MLCEngine]:
    with MLCEngine(folder) as made:
        yield made


def test_answers_are_the_servers_byte_for_byte(host, engine):
    for request in ANSWERS[::4]:  # the others at night
        assert fixed(host.ask(**request)) == answered(engine, request), request


@pytest.mark.nightly
def test_all_answers(host, engine):
    for request in ANSWERS:
        assert fixed(host.ask(**request)) == answered(engine, request), request


def test_streams(host, engine):
    for request in STREAMS:
        check_stream(host.all(host.start(**streamed(request))), engine, request)


def test_errors_mean_the_same(host, engine):
    for request in ERRORS:
        if request not in guided_cases.ERRORS:
            assert meaning(host.ask(**request)) == meaning(refused(engine, request)), request


@pytest.mark.nightly
def test_templates_are_jinjas(folder, tmp_path):
    made = with_template(folder, tmp_path / "model")
    host = Host(made)
    with MLCEngine(made) as engine:
        for request in TEMPLATE_ERRORS:
            assert host.ask(**request) == refused(engine, request)
        for request in TEMPLATE_ANSWERS:
            assert fixed(host.ask(**request)) == answered(engine, request)
    host.close()


@pytest.mark.nightly
def test_chats_with_tools(tmp_path):
    for told in folders(CHATS, tmp_path):
        host = Host(told.folder, told.options.get("tool_format", ""))
        with MLCEngine(told.folder, **told.options) as engine:
            for case in told.cases:
                made = host.ask(**case["request"])
                wanted = engine.chat.completions.create(**case["request"]).model_dump()
                said = case["said"]
                assert without_ids(made, said) == without_ids(wanted, said), case
        host.close()


def test_how_a_request_was_read(host):
    about = host.about(messages=ASK, max_tokens=1, top_a=0, store=True, n=2)
    assert about == {
        "prompt_tokens": about["prompt_tokens"],
        "choices": 2,
        "dropped_messages": 0,
        "adapted": [],
        "ignored": ["store", "top_a"],
    }
    assert about["prompt_tokens"] > 0


def test_a_request_of_which_the_engine_takes_a_part(host, engine):
    host.refused_add = host.added + 2
    error = host.ask(messages=ASK, n=3, max_tokens=4)["error"]
    assert (error["code"], error["message"]) == ("engine_error", "The engine takes no more")
    request = {"messages": ASK, "temperature": 0, "max_tokens": 4}
    assert fixed(host.ask(**request)) == answered(engine, request)


def test_thirty_two_at_once(host, engine):
    requests = [{"messages": ASK, "seed": i, "max_tokens": 4 + i} for i in range(32)]
    numbers = [host.start(**request) for request in requests]
    for request, number in zip(requests, numbers, strict=True):
        assert fixed(host.all(number)[-1]) == answered(engine, request)
