"""Ollama's embeddings: shapes and errors. That vectors are right is tested with the engine's."""

from __future__ import annotations

import numpy as np
import pytest
from fastapi.testclient import TestClient as AnyClient

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.core.interface import Event, Finish
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.tokenizer import Tokenizer

from .. import small_tokenizers
from ..conftest import core_of
from ..fake_core import FakeCore, saying


class EmbeddingCore(FakeCore):
    """Its vectors say how long the text was; before they are normalised: (tokens, 1)."""

    def __init__(self, **core):
        super().__init__(saying([], 7), **core)
        self.metadata |= {"entries": ("forward", "embed"), "embedding_size": 2}

    def _sample(self, request_id, request):
        if not request.params.embed:
            return super()._sample(request_id, request)
        vector = np.array([len(request.prompt), 1], np.float32)
        return Event(request_id, -1, Finish.DONE, 0.0, embedding=vector.tobytes())


@pytest.fixture
def model():
    tokenizer = Tokenizer(small_tokenizers.byte_level(), {"eos_token": "</s>"})
    model = LoadedModel("small", EmbeddingCore(), SideFiles(tokenizer), max_batch=4)
    yield model
    model.close()


@pytest.fixture
def client(model):
    return AnyClient(create_app(MLCEngine.of(model)), base_url="http://localhost")


def expected(model, text):
    size = len(model.tokenizer.encode(text))
    length = (size**2 + 1) ** 0.5
    return pytest.approx([size / length, 1 / length], rel=1e-6)


def test_embed(client, model):
    texts = ["the cat", "Once upon a time"]
    answer = client.post("/api/embed", json={"model": "small:latest", "input": texts}).json()
    assert answer["model"] == "small:latest"
    assert answer["embeddings"] == [expected(model, t) for t in texts]
    assert answer["prompt_eval_count"] == sum(len(model.tokenizer.encode(t)) for t in texts)
    assert answer["total_duration"] >= answer["load_duration"] > 0
    one = client.post("/api/embed", json={"model": "small", "input": texts[0]}).json()
    assert one["embeddings"] == answer["embeddings"][:1]


def test_embeddings_of_one_text(client, model):
    answer = client.post("/api/embeddings", json={"model": "small", "prompt": "the cat"}).json()
    assert answer == {"embedding": expected(model, "the cat")}


def test_dimensions(client):
    answer = client.post("/api/embed", json={"input": "the cat", "dimensions": 1}).json()
    assert answer["embeddings"] == [[1.0]]
    answer = client.post("/api/embed", json={"input": "the cat", "dimensions": 3})
    assert answer.status_code == 400 and "have 2" in answer.json()["error"]


def test_without_a_text_the_model_is_loaded(client, model):
    assert client.post("/api/embed", json={"model": "small"}).json()["embeddings"] == []
    assert client.post("/api/embeddings", json={"model": "small"}).json() == {"embedding": []}
    assert core_of(model).added == []


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"model": "other", "input": "a"}, 404, "'other'"),
        ({"model": "other"}, 404, "'other'"),
        ({"input": 3}, 400, "input"),
        ({"input": ["a", 3]}, 400, "input"),
        ({"input": ["a"] * 2049}, 400, "2049 texts; at most 2048"),
        ({"input": "the cat " * 600, "truncate": False}, 400, "at most 512 tokens"),
        ({"input": "a", "keep_alive": "x"}, 400, "a duration is"),
    ],
)
def test_errors(client, fields, status, said):
    answer = client.post("/api/embed", json=fields)
    assert answer.status_code == status and set(answer.json()) == {"error"}
    assert said in answer.json()["error"]


def test_what_has_no_effect_is_named(client):
    fields = {"input": "a", "truncate": True, "options": {"num_ctx": 5, "seed": None}}
    answer = client.post("/api/embed", json=fields)
    assert answer.headers["x-wherry-ignored"] == "options.num_ctx"
    assert answer.status_code == 200
