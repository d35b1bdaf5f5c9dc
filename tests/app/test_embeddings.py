"""A tiny BERT over the C ABI of apps, against Python's engine on the same compiled folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.compiler.api import Limits, ensure_artifact
from wherry.runtime import MLCEngine

from ..models.encoders import CASES, save
from ..runtime.test_encoders import tokenizer
from .answers import answered, fixed, meaning, refused
from .app import App
from .request_cases import EMBEDDING_ERRORS, EMBEDDINGS

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bert")
    save(made, CASES["bert"])
    tokenizer(made)
    limits = Limits(max_batch=4, prefill_chunk=128)
    return Path(ensure_artifact(str(made), target="cpu", quant="q0f32", limits=limits))


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[App]:
    made = App(folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[MLCEngine]:
    with MLCEngine(folder) as made:
        yield made


@pytest.mark.parametrize("row", range(len(EMBEDDINGS)))
def test_embeddings_are_pythons_byte_for_byte(app, engine, row):
    assert fixed(app.ask(**EMBEDDINGS[row])) == answered(engine, EMBEDDINGS[row])


@pytest.mark.parametrize("row", range(len(EMBEDDING_ERRORS)))
def test_errors_mean_what_pythons_do(app, engine, row):
    assert meaning(app.ask(**EMBEDDING_ERRORS[row])) == meaning(
        refused(engine, EMBEDDING_ERRORS[row])
    )
