"""Requests over the real core, through the C++ layer that Python's server stands on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.errors import WherryError
from wherry.runtime import MLCEngine
from wherry.runtime.core.native import NativeCore
from wherry.runtime.host.request import HostRequest
from wherry.runtime.host.sinks import BlockingSink

from .answers import answered
from .request_cases import ASK

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def engine() -> Iterator[MLCEngine]:
    with MLCEngine(ensure_artifact("demo", target="cpu"), threads=1) as engine:
        yield engine


def ended(engine: MLCEngine, **fields: Any) -> dict[str, Any]:
    """What C++ says of a request as it begins, which has then run to its end."""
    sink = BlockingSink()
    running = engine.loaded.start(HostRequest("chat", fields), sink)
    while not running.done:
        running.take(sink.take())
    return running.opened


def test_how_a_request_was_read(engine):
    about = ended(engine, messages=ASK, max_tokens=1, top_a=0, store=True, n=2)
    assert (about["choices"], about["dropped_messages"]) == (2, 0)
    assert (about["adapted"], about["ignored"]) == ([], ["store", "top_a"])
    assert about["prompt_tokens"] > 0


def test_a_request_of_which_the_engine_takes_a_part(engine, monkeypatch):
    request = {"messages": ASK, "temperature": 0, "max_tokens": 4}
    before = answered(engine, request)
    taken: list[int] = []
    add = NativeCore.add_record

    def add_record(core: NativeCore, request_id: int, *job: Any) -> None:
        if len(taken) == 1:
            raise WherryError("The engine takes no more")
        taken.append(request_id)
        add(core, request_id, *job)

    with monkeypatch.context() as patched:
        patched.setattr(NativeCore, "add_record", add_record)
        with pytest.raises(WherryError, match="The engine takes no more"):
            engine.chat.completions.create(messages=ASK, n=3, max_tokens=4)
    assert len(taken) == 1
    assert answered(engine, request) == before
    assert engine.loaded.dispatcher.active == 0
