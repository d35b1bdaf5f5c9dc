"""Chats with images over compiled Qwen3-VL and Qwen3.5, against transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from starlette.testclient import TestClient
from tokenizers import AddedToken
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.caller import Caller

from ..models.test_qwen_towers import CASES
from ..support.tiny_models import COMMON, OFFSET_NORMS, compiled, randomise
from . import small_tokenizers
from .vision_model import file_of, picture, text, url_of

pytestmark = pytest.mark.cpu
PLACEHOLDER = "<|image_pad|>"
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", PLACEHOLDER, "<|vision_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content %}{% if p.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ p.text }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% endif %}"
)
PROCESSOR = {
    "patch_size": 4,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "size": {"shortest_edge": 128, "longest_edge": 1024},
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
SIZES = [(33, 30), (200, 90), (7, 31)]
NAMES = ["qwen3_vl", pytest.param("qwen3_5", marks=pytest.mark.nightly)]


@pytest.fixture(scope="module", params=NAMES)
def folder(request, tmp_path_factory) -> Path:
    """A tiny model, as on the hub."""
    case, folder = CASES[request.param], tmp_path_factory.mktemp(request.param)
    backend = small_tokenizers.byte_level()
    backend.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    torch.manual_seed(4)
    sizes = {n: v for n, v in COMMON.items() if not n.endswith("token_id")}
    config = transformers.AutoConfig.for_model(
        case.model_type,
        text_config={**sizes, **case.text, "vocab_size": 400},
        vision_config=case.vision,
        image_token_id=backend.token_to_id(PLACEHOLDER),
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 1 if f"{case.model_type}_".startswith(OFFSET_NORMS) else 0)
    randomise(model.model.visual, 0)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def reference(folder) -> Any:
    return transformers.AutoModelForImageTextToText.from_pretrained(folder).float().eval()


@pytest.fixture
def engine(folder):
    with MLCEngine(compiled(folder), threads=1) as engine:
        yield engine


def messages_of(images, said: str = " What is it?") -> list[dict[str, Any]]:
    urls = [url_of(file_of(image)) for image in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    between = [piece for part in parts for piece in (part, text("and"))]
    return [{"role": "user", "content": [*between[:-1], text(said)]}]


def answered(engine, messages, n: int = 6):
    """The logprobs of a greedy answer, its text and its usage."""
    answer = engine.chat.completions.create(
        messages=messages, max_tokens=n, temperature=0, logprobs=True, ignore_eos=True
    )
    (choice,) = answer.choices
    logprobs = [one.logprob for one in choice.logprobs.content]
    return logprobs, choice.message.content, answer.usage


def expected(reference, prompt, images, n: int = 6) -> list[float]:
    """What transformers' model says to the same tokens and the pixels of its own processor."""
    pixels = Qwen2VLImageProcessorPil(**PROCESSOR)(images=images, return_tensors="pt")
    ids, logprobs = list(prompt), []
    for _ in range(n):
        types = [int(id == reference.config.image_token_id) for id in prompt]
        types += [0] * (len(ids) - len(prompt))
        with torch.no_grad():
            out = reference(
                input_ids=torch.tensor([ids]), mm_token_type_ids=torch.tensor([types]), **pixels
            )
        logits = out.logits[0, -1].log_softmax(-1)
        ids.append(int(logits.argmax()))
        logprobs.append(float(logits.max()))
    return logprobs


@pytest.mark.parametrize("sizes", [SIZES[:1], SIZES], ids=["one", "three"])
def test_answers_are_those_of_transformers(engine, reference, sizes):
    images = [picture(*size, seed=i) for i, size in enumerate(sizes)]
    messages = messages_of(images)
    got, _, usage = answered(engine, messages)
    prompt = engine.loaded.prompt({"messages": messages}, Caller())
    assert usage.prompt_tokens == len(prompt)
    assert engine.stats().images_encoded == len(images)
    np.testing.assert_allclose(got, expected(reference, prompt, images), atol=1e-4)


def test_a_second_turn_goes_on_after_the_images(engine, reference):
    """From the prefix cache, at positions that are less than the number of tokens."""
    images = [picture(*size, seed=i) for i, size in enumerate(SIZES[:2])]
    messages = messages_of(images)
    _, said, _ = answered(engine, messages)
    messages += [{"role": "assistant", "content": said}, *messages_of(images[:1], " And?")]
    got, _, usage = answered(engine, messages)
    assert usage.prompt_tokens_details.cached_tokens > 0
    assert engine.stats().images_encoded == 2  # the third is the first
    prompt = engine.loaded.prompt({"messages": messages}, Caller())
    np.testing.assert_allclose(got, expected(reference, prompt, [*images, images[0]]), atol=1e-4)


def test_a_server_answers_as_the_engine(engine):
    messages = messages_of([picture(*SIZES[1])])
    _, said, _ = answered(engine, messages)
    client = TestClient(create_app(engine), base_url="http://localhost")
    body = {"messages": messages, "max_tokens": 6, "temperature": 0, "ignore_eos": True}
    answer = client.post("/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == said
    (listed,) = client.get("/v1/models").json()["data"]
    assert listed["input_modalities"] == ["text", "image"]
