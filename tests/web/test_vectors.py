"""Tiny encoders and a reranker in Node and in Chromium, against Python's engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from wherry.runtime import MLCEngine

from ..app.answers import answered, fixed, meaning, refused
from ..app.request_cases import VECTOR_ERRORS, VECTORS, typed
from ..app.vector_models import MODELS
from ..app.vector_models import compiled as compiled_model
from .browser import answer_of
from .conftest import ROOT
from .test_requests import unnamed

PROGRAM = Path(__file__).with_name("vectors.mjs")
# A page refuses fields by their names before the app reads their values; it knows no other names.
OTHERS_NAMES = ("instruct",)


def rows(table, name):
    known = (row for row in typed(table[name]) if not any(one in row for one in OTHERS_NAMES))
    return [unnamed(row) for row in known]


@pytest.fixture(scope="module", params=MODELS)
def both(request, tools, compiled, tmp_path_factory):
    """Name of a model, what the package answers to its rows and errors, and Python's engine.

    The engine's CPU computes as WebAssembly does: four lanes, no fused multiply-add.
    """
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    page, here = (compiled_model(name, folder, target) for target in ("wasm", "cpu:x86-64-v2"))
    requests = [*rows(VECTORS, name), *rows(VECTOR_ERRORS, name)]
    done = subprocess.run(
        ["node", str(PROGRAM), str(compiled), str(page)],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    with MLCEngine(here, threads=1) as engine:
        yield name, json.loads(done.stdout), engine


@pytest.mark.cpu
@pytest.mark.by_day("reranker")
def test_answers_are_pythons(both):
    name, answers, engine = both
    for row, answer in zip(rows(VECTORS, name), answers, strict=False):
        # numbers by their value: JavaScript writes 1.0 as 1
        assert json.loads(fixed(answer)) == json.loads(answered(engine, row)), row


@pytest.mark.cpu
@pytest.mark.by_day("reranker")
def test_errors_mean_what_pythons_do(both):
    name, answers, engine = both
    errors = rows(VECTOR_ERRORS, name)
    for row, answer in zip(errors, answers[-len(errors) :], strict=True):
        assert meaning(answer) == meaning(refused(engine, row)), row


@pytest.mark.nightly  # pipelines of its own
@pytest.mark.browser
def test_embeddings_on_webgpu_are_the_cpu_s(chromium, core_js, tmp_path):
    page, here = (
        compiled_model("embedder", tmp_path, target, "q8f32_1")
        for target in ("webgpu", "cpu:x86-64-v2")
    )
    prompts = [[2, 7, 9, 11, 3], [2, 20, 3], [2, *range(30, 110), 3]]
    report = answer_of(
        {"core": core_js, "model": page, "tests": ROOT / "tests" / "web"},
        {"only": "embeddings", "prompts": prompts},
        540,
    )
    assert "failure" not in report, report["failure"]
    with MLCEngine(here, threads=1) as engine:
        expected = [row.embedding for row in engine.embeddings.create(input=prompts).data]
    np.testing.assert_allclose(report["vectors"], expected, atol=1e-4)
