"""Tiny encoders and a reranker over the C ABI of apps, against Python's engine on equal folders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wherry.runtime import MLCEngine

from ..support.waiting import until
from .answers import answered, fixed, meaning, refused
from .app import App
from .request_cases import VECTOR_ERRORS, VECTORS
from .vector_models import MODELS, shared

pytestmark = pytest.mark.cpu
# One of each kind of answer; the others take the same paths, and test_lite_vectors.py has one more.
PARAMS = [
    m if m in ("embedder", "cross_encoder") else pytest.param(m, marks=pytest.mark.nightly)
    for m in MODELS
]


@pytest.fixture(scope="module", params=PARAMS)
def both(request) -> Iterator[tuple[str, App, MLCEngine]]:
    """Name of a model, the app and Python's engine that have it."""
    folder = shared(request.param)
    app = App(folder)
    with MLCEngine(folder, threads=1) as engine:
        yield request.param, app, engine
    app.close()


def test_answers_are_pythons_byte_for_byte(both):
    name, app, engine = both
    for row in VECTORS[name]:
        assert fixed(app.ask(**row)) == answered(engine, row), row
    until(lambda: app.stats()["requests"] == 0)  # an answer comes before its request is counted out


def test_errors_mean_what_pythons_do(both):
    name, app, engine = both
    for row in VECTOR_ERRORS[name]:
        assert meaning(app.ask(**row)) == meaning(refused(engine, row)), row


def test_an_unknown_task(both):
    error = both[1].ask(task="sing", input="w5")["error"]
    assert (error["param"], error["type"]) == ("task", "invalid_request_error")
