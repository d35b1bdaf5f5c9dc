"""Chats with images over a compiled model that sees, against transformers' model and processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from fastapi.testclient import TestClient
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from wherry.artifact.manifest import read_manifest
from wherry.compiler.choices import Limits
from wherry.compiler.forecast import described_folder, forecast
from wherry.runtime import MLCEngine, create_app
from wherry.runtime.caller import Caller

from ..support.seeing_folder import seeing_folder
from ..support.tiny_models import COMMON, compiled
from .vision_model import SETTINGS, file_of, picture, text, url_of

pytestmark = pytest.mark.cpu
SIZES = [(64, 64), (200, 90), (7, 31), (32, 32)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return seeing_folder(tmp_path_factory.mktemp("smolvlm"))


@pytest.fixture(scope="module")
def reference(folder) -> Any:
    return transformers.AutoModelForImageTextToText.from_pretrained(folder).float().eval()


@pytest.fixture
def engine(folder):
    with MLCEngine(compiled(folder), threads=1) as engine:
        yield engine


def messages_of(images) -> list[dict[str, Any]]:
    urls = [url_of(file_of(image)) for image in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    between = [piece for part in parts for piece in (part, text("and"))]
    return [{"role": "user", "content": [*between[:-1], text(" What is it? <image>")]}]


def answered(engine, messages, n: int = 6):
    """The logprobs of a greedy answer, and its usage."""
    answer = engine.chat.completions.create(
        messages=messages, max_tokens=n, temperature=0, logprobs=True, ignore_eos=True
    )
    return [one.logprob for one in answer.choices[0].logprobs.content], answer.usage


def expected(reference, prompt, images, typed: int, n: int = 6) -> list[float]:
    """What transformers' model says to the same tokens and the pixels of its own processor.

    A typed placeholder is given as the embedding of its token, which transformers has no way for.
    """
    pixels = SmolVLMImageProcessorPil(**SETTINGS["processor"])(
        images=[images], return_tensors="pt", return_row_col_info=False
    )
    with torch.no_grad():
        features = torch.cat(
            [*reference.model.get_image_features(pixels["pixel_values"]).pooler_output]
        ).reshape(-1, COMMON["hidden_size"])
        ids, logprobs = list(prompt), []
        for _ in range(n):
            embeddings = reference.get_input_embeddings()(torch.tensor([ids]))
            places = [i for i, id in enumerate(prompt) if id == reference.config.image_token_id]
            embeddings[0, places[: len(places) - typed]] = features
            logits = reference(inputs_embeds=embeddings).logits[0, -1].log_softmax(-1)
            ids.append(int(logits.argmax()))
            logprobs.append(float(logits.max()))
    return logprobs


@pytest.mark.parametrize("sizes", [[s] for s in SIZES] + [SIZES[:3]], ids=str)
def test_answers_are_those_of_transformers(engine, reference, sizes):
    images = [picture(*size, seed=i) for i, size in enumerate(sizes)]
    messages = messages_of(images)
    got, usage = answered(engine, messages)
    prompt = engine.loaded.prompt({"messages": messages}, Caller())
    assert usage.prompt_tokens == len(prompt)
    np.testing.assert_allclose(got, expected(reference, prompt, images, typed=1), atol=1e-4)


def test_an_image_is_encoded_once(engine):
    one, other = messages_of([picture(64, 64, 1)]), messages_of([picture(64, 64, 2)])
    first, usage = answered(engine, one)
    assert engine.stats().images_encoded == 5
    assert (usage.prompt_tokens_details.cached_tokens or 0) == 0
    again, usage = answered(engine, one)
    assert again == first and usage.prompt_tokens_details.cached_tokens > 0
    assert engine.stats().images_encoded == 5
    different, _ = answered(engine, other)
    assert different != first  # images of one size have equal tokens
    assert engine.stats().images_encoded == 10


def test_what_a_server_says_of_it(engine):
    client = TestClient(create_app(engine), base_url="http://localhost")
    (listed,) = client.get("/v1/models").json()["data"]
    assert listed["input_modalities"] == ["text", "image"]
    shown = client.post("/api/show", json={"model": listed["id"]}).json()
    assert "vision" in shown["capabilities"]


def test_text_alone(engine):
    said = [{"role": "user", "content": "What is it?"}]
    first, _ = answered(engine, said)
    assert engine.stats().images_encoded == 0
    answered(engine, messages_of([picture(64, 64)]))
    assert answered(engine, said)[0] == first


def test_a_plan_counts_the_tower_and_features(folder):
    manifest = read_manifest(compiled(folder))
    limits = Limits(max_batch=256, prefill_chunk=256)
    choices = {"quant": "q0f32", "target": "cpu", "kv_dtype": "float32", "limits": limits}
    with described_folder(str(folder)) as described:
        planned = forecast(str(folder), described, **choices).memory
    assert planned == manifest.memory
    assert planned["image_row"] == 4 * COMMON["hidden_size"]
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert 4 * 48 * 48 < planned["tower"] < stored + 10**7
