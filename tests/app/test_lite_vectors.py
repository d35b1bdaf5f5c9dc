"""`wherry-lite serve` with models whose answers are numbers, against Python's server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from wherry.runtime import MLCEngine
from wherry.runtime.server.app import create_app

from ..runtime.server.asking import client_of
from .answers import fixed, meaning
from .lite import Server, cache, command
from .request_cases import ASK, GREEDY, VECTOR_ERRORS, VECTORS, Request
from .vector_models import MODELS, shared

pytestmark = pytest.mark.cpu
# Two of them answer each task; the others take the same paths.
BY_DAY = ("embedder", "classifier")
PARAMS = [pytest.param(m, marks=[] if m in BY_DAY else pytest.mark.nightly) for m in MODELS]
TASKS = {"embed": "/embeddings", "classify": "/classify", "rerank": "/rerank", "score": "/score"}


@pytest.fixture(scope="module", params=PARAMS)
def both(request, tmp_path_factory) -> Iterator[tuple[str, Server, TestClient]]:
    """Name of a model, wherry-lite and Python's server that have it."""
    place = tmp_path_factory.mktemp(request.param)
    folder = shared(request.param)
    with (
        cache(place),
        MLCEngine(folder, threads=1) as engine,
        Server(command("serve", folder, "--name", engine.loaded.name), place) as server,
    ):
        yield request.param, server, client_of(create_app(engine))


def sent(row: Request, path: str = "") -> tuple[str, Request]:
    """The path of a row of the table and its body: the path says the task."""
    task = row.get("task", "rerank" if "query" in row else "embed")
    fields = {name: value for name, value in row.items() if name not in ("task", "model")}
    return path or TASKS[task], fields


def test_answers_are_pythons_byte_for_byte(both):
    name, server, python = both
    for row in VECTORS[name]:
        for version in ("", "/v1"):
            path, fields = sent(row)
            status, answer, headers = server.ask("POST", version + path, fields)
            reference = python.post(version + path, json=fields)
            assert (status, headers["Content-Type"]) == (200, reference.headers["Content-Type"]), (
                row
            )
            assert fixed(answer) == fixed(reference.json()), (version, row)
    server.wait_until_idle()


def test_errors_mean_what_pythons_do(both):
    name, server, python = both
    for row in VECTOR_ERRORS[name]:
        for version in ("", "/v1"):
            path, fields = sent(row)
            status, answer, _ = server.ask("POST", version + path, fields)
            reference = python.post(version + path, json=fields)
            assert status == reference.status_code, (version, row)
            if status != 200:  # /v1/rerank cuts what /rerank refuses
                assert meaning(answer) == meaning(reference.json()), (version, row)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/embeddings", {"input": "w5", "model": "gpt-4"}),
        ("/v1/embeddings", {"input": "w5", "model": "", "task": "sing", "stream": True}),
        ("/v1/embeddings", {"messages": ASK, "query": "w5"}),
        ("/v1/rerank", {"query": "w5", "documents": ["w6"], "prompt": "w5", "messages": ASK}),
        ("/v2/rerank", {"query": "w5", "documents": ["w6 " * 900, "w5"], "truncate": None}),
        ("/v1/classify", {"input": ["w5", 7]}),
        ("/score", {"text_1": "w5", "text_2": ["w6", "w5"], "task": "embed", "input": 7}),
        ("/v1/score", {"query": "w5", "documents": ["w6"]}),
        ("/v1/chat/completions", {"messages": ASK, "task": "embed", "input": "w5", **GREEDY}),
        ("/v1/chat/completions", {"input": "w5"}),
        ("/v1/completions", {"prompt": "w5", "task": "embed", "input": "w5", **GREEDY}),
    ],
)
def test_a_path_says_what_is_requested(both, path, fields):
    _, server, python = both
    status, answer, _ = server.ask("POST", path, fields)
    reference = python.post(path, json=fields)
    assert status == reference.status_code, answer
    if status == 200:
        assert fixed(answer) == fixed(reference.json())
    else:
        assert meaning(answer) == meaning(reference.json())


def test_paths_are_listed(both):
    endpoints = both[1].ask("GET", "/")[1]["endpoints"]
    for path in ("/v1/embeddings", "/v1/classify", "/v1/score", "/v1/rerank", "/rerank"):
        assert f"POST {path}" in endpoints
        status, _, headers = both[1].ask("GET", path)
        assert (status, headers["Allow"]) == (405, "POST"), json.dumps(headers)
