"""Embeddings of real tiny models, through the core, against transformers."""

from __future__ import annotations

import asyncio
import base64
import json
import threading

import numpy as np
import pytest

from wherry.compiler.api import Limits, ensure_artifact
from wherry.runtime import AsyncMLCEngine, MLCEngine, RequestError
from wherry.runtime.core.interface import SamplingParams
from wherry.runtime.host.request import HostRequest
from wherry.runtime.host.sinks import BlockingSink

from ..support.tiny_embedder import PROMPT, make, words

pytestmark = pytest.mark.cpu
TOLERANCE = 2e-4
CHUNK = 48  # rows of a step: less than the long texts
TEXTS = [words(1, 100), words(2, 7), words(3, 40), words(1, 80)]


def compiled(folder):
    return ensure_artifact(
        str(folder),
        target="cpu",
        quant="q0f32",
        kv_dtype="float32",
        limits=Limits(max_batch=8, prefill_chunk=CHUNK),
    )


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedder")
    return make(folder, ("Pooling", "Normalize"), tie_word_embeddings=True)


@pytest.fixture(scope="module")
def engine(embedder):
    with MLCEngine(compiled(embedder.folder)) as engine:
        yield engine


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """A model that writes text, and what torch makes of it."""
    model = make(tmp_path_factory.mktemp("writer"))
    with MLCEngine(compiled(model.folder)) as engine:
        yield engine, model


def vectors(answer):
    return [np.array(item.embedding, np.float32) for item in answer.data]


def test_against_transformers(engine, embedder):
    answer = engine.embeddings.create(input=TEXTS)
    for text, vector in zip(TEXTS, vectors(answer), strict=True):
        expected = embedder.vector(text)
        assert np.abs(expected).max() > 0.05
        assert np.abs(vector - expected).max() <= TOLERANCE
    read = sum(len(embedder.tokenizer.encode(text).ids) for text in TEXTS)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == read


def test_the_same_bits_alone_in_chunks_and_from_the_cache(embedder):
    """Chunked at 48 rows or not, in a batch or alone, computed or found in the prefix cache."""
    full = ensure_artifact(
        str(embedder.folder), target="cpu", quant="q0f32", kv_dtype="float32",
        limits=Limits(max_batch=8, prefill_chunk=256),
    )  # fmt: skip
    with MLCEngine(full, prefix_cache=False) as engine:
        alone = [vectors(engine.embeddings.create(input=text))[0] for text in TEXTS]
    with MLCEngine(compiled(embedder.folder)) as engine:
        together = vectors(engine.embeddings.create(input=TEXTS))
        again = vectors(engine.embeddings.create(input=TEXTS[::-1]))[::-1]
        assert engine.stats().cached_tokens > 0
    assert np.array_equal(alone, together)
    assert np.array_equal(alone, again)


def test_prompts(engine, embedder):
    answer = engine.embeddings.create(input=TEXTS[1], prompt_name="query")
    assert np.abs(vectors(answer)[0] - embedder.vector(PROMPT + TEXTS[1])).max() <= TOLERANCE
    with pytest.raises(RequestError, match="'document', 'query'") as e:
        engine.embeddings.create(input=TEXTS[1], prompt_name="passage")
    assert e.value.param == "prompt_name"


def test_inputs(engine, embedder):
    ids = embedder.tokenizer.encode(TEXTS[1]).ids
    text, one, several = (
        vectors(engine.embeddings.create(input=given)) for given in (TEXTS[1], ids, [ids, ids[:3]])
    )
    assert np.array_equal(text, one)
    assert np.array_equal(several[0], one[0])
    assert np.abs(several[1] - _unit(embedder.hidden(ids[:3]))).max() <= TOLERANCE


def _unit(x):
    return x / np.linalg.norm(x)


def test_dimensions_and_base64(engine):
    (full,) = vectors(engine.embeddings.create(input="w20 w21"))
    (short,) = vectors(engine.embeddings.create(input="w20 w21", dimensions=10))
    assert short.shape == (10,)
    assert np.allclose(short, _unit(full[:10].astype(np.float64)), atol=1e-6)
    packed = engine.embeddings.create(input="w20 w21", encoding_format="base64").data[0].embedding
    assert np.array_equal(np.frombuffer(base64.b64decode(packed), "<f4"), full)
    with pytest.raises(RequestError, match="this model's embeddings have 64"):
        engine.embeddings.create(input="w20", dimensions=65)


def test_a_text_may_fill_the_context_and_no_more(engine):
    limit = engine.loaded.context
    assert len(vectors(engine.embeddings.create(input=[20] * limit))[0]) == 64
    for given in ([20] * (limit + 1), words(1, limit)):  # and the tokenizer's end token
        with pytest.raises(RequestError, match=f"at most {limit} tokens") as e:
            engine.embeddings.create(input=given)
        assert e.value.code == "context_length_exceeded"


def test_a_text_that_is_cut_keeps_the_tokenizers_end(engine, embedder):
    limit = engine.loaded.context
    ids = embedder.tokenizer.encode(words(1, 2 * limit)).ids
    (cut,) = vectors(engine.embeddings.create(input=words(1, 2 * limit), truncate=True))
    (expected,) = vectors(engine.embeddings.create(input=ids[: limit - 1] + ids[-1:]))
    assert np.array_equal(cut, expected)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"input": []}, "input is empty"),
        ({"input": [[5], []]}, r"input\[1\] is empty"),
        ({"input": [5, 400]}, "token 400; ids go from 0 to 319"),
        ({"input": None}, "is missing"),
        ({"input": ["a"] * 2049}, "2049 texts; at most 2048"),
        ({"input": "a", "encoding_format": "float16"}, "encoding_format"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": [5], "prompt_name": "query"}, "token ids"),
    ],
)
def test_refusals(engine, fields, said):
    with pytest.raises(RequestError, match=said):
        engine.embeddings.create(**fields)


def test_a_model_of_embeddings_writes_nothing(engine):
    assert engine.loaded.entries == ("embed",)
    with pytest.raises(RequestError, match="v1/embeddings"):
        engine.completions.create(prompt="w20")


async def test_async_engine(engine):
    other = AsyncMLCEngine.of(engine.loaded)
    answers = await asyncio.gather(*(other.embeddings.create(input=TEXTS) for _ in range(3)))
    expected = vectors(engine.embeddings.create(input=TEXTS))
    assert all(np.array_equal(vectors(answer), expected) for answer in answers)


def test_embeddings_beside_text(writer):
    """A model that writes text gives embeddings, too; neither changes the other's bits."""
    engine, model = writer
    params = SamplingParams(temperature=0, max_tokens=60)
    ids = model.tokenizer.encode(TEXTS[2]).ids

    def write():
        return [event.token for event in engine.generate(ids, params)]

    alone = write()
    expected = vectors(engine.embeddings.create(input=TEXTS))
    engine.loaded.dispatcher._core.clear_cache()
    written: list[list[int]] = []
    threads = [threading.Thread(target=lambda: written.append(write())) for _ in range(3)]
    for thread in threads:
        thread.start()
    repeats = [vectors(engine.embeddings.create(input=TEXTS)) for _ in range(3)]
    for thread in threads:
        thread.join()
    assert all(np.array_equal(f, expected) for f in repeats)
    assert written == [alone] * 3
    for text, vector in zip(TEXTS, expected, strict=True):
        assert np.abs(vector - model.vector(text)).max() <= TOLERANCE


def test_more_inputs_than_the_queue_holds(engine):
    dispatcher = engine.loaded.dispatcher
    dispatcher.limit = 5
    try:
        answer = engine.embeddings.create(input=[[20 + i] for i in range(40)])
    finally:
        dispatcher.limit = None
    alone = vectors(engine.embeddings.create(input=[20 + 33]))[0]
    assert np.array_equal(vectors(answer)[33], alone)
    assert dispatcher.active == 0


def test_a_reranker(tmp_path_factory):
    """The probability of its yes, against transformers: from the model's own template."""
    model = make(tmp_path_factory.mktemp("reranker"), ("LogitScore",))
    with MLCEngine(compiled(model.folder)) as engine:
        assert engine.loaded.entries == ("forward",)
        fields = {"query": "w20 w21", "documents": TEXTS[1:]}
        sink = BlockingSink()
        running = engine.loaded.start(HostRequest("rerank", fields), sink)
        data: list[bytes] = []
        while not running.done:
            data += running.take(sink.take())
        scores = {r["index"]: r["relevance_score"] for r in json.loads(data[-1])["results"]}
    for i, text in enumerate(TEXTS[1:]):
        expected = model.probability(f"w11 w20 w21 w12 {text} w13")
        assert abs(scores[i] - expected) <= TOLERANCE
    assert len({round(p, 3) for p in scores.values()}) > 1
