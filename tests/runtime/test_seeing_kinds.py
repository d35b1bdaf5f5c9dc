"""Chats with images of Pixtral's and Gemma 3's kinds, against transformers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import AddedToken
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil

from wherry.runtime import MLCEngine
from wherry.runtime.caller import Caller

from ..support.tiny_models import COMMON, compiled, randomise
from . import small_tokenizers
from .vision_model import file_of, picture, text, url_of

pytestmark = pytest.mark.cpu
TOKENS = 6
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% for p in m.content %}{% if p.type == 'image' %}"
    "PLACEHOLDER{% else %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
VISION = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
}


@dataclass(frozen=True)
class Kind:
    specials: tuple[str, ...]  # the placeholder of a template, and other tokens of images
    soft: str  # what stands for a feature
    config: dict[str, Any]
    processor: dict[str, Any]
    offset: int = 0  # of the text model's norms

    def pixels(self, images: list[Any], ids: torch.Tensor, image: int) -> dict[str, torch.Tensor]:
        """What the model takes besides tokens."""
        if self.config["model_type"] == "gemma3":
            given = Gemma3ImageProcessorPil(**self.processor)(images=images, return_tensors="pt")
            return {"pixel_values": given["pixel_values"], "token_type_ids": (ids == image).int()}
        # PixtralProcessor rounds to what becomes a feature.
        patch = {"height": 8, "width": 8}
        processor = PixtralImageProcessorPil(**{**self.processor, "patch_size": patch})
        return dict(processor(images=images, return_tensors="pt"))


KINDS = {
    "mistral3": Kind(
        ("[IMG]", "[IMG_BREAK]", "[IMG_END]"),
        "[IMG]",
        {
            "model_type": "mistral3",
            "text_config": {"model_type": "mistral", "sliding_window": None},
            "vision_config": {"model_type": "pixtral", **VISION, "image_size": 40, "patch_size": 4},
            "spatial_merge_size": 2,
        },
        {"size": {"longest_edge": 40}, "patch_size": {"height": 4, "width": 4}},
    ),
    "gemma3": Kind(
        ("<start_of_image>", "<image_soft_token>", "<end_of_image>"),
        "<image_soft_token>",
        {
            "model_type": "gemma3",
            "text_config": {
                "head_dim": 16,
                "query_pre_attn_scalar": 16,
                "sliding_window": 20,
                "layer_types": ["sliding_attention", "full_attention"],
            },
            "vision_config": {**VISION, "image_size": 32, "patch_size": 4},
            "mm_tokens_per_image": 16,
        },
        {"size": {"height": 32, "width": 32}, "do_pan_and_scan": False},
        offset=1,
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def seeing(request, tmp_path_factory):
    """(a kind, its tiny model as on the hub, transformers' model)."""
    kind, folder = KINDS[request.param], tmp_path_factory.mktemp(request.param)
    return kind, folder, save(folder, kind)


def save(folder: Path, kind: Kind) -> torch.nn.Module:
    backend = small_tokenizers.byte_level()
    backend.add_special_tokens([AddedToken(name, special=True) for name in kind.specials])
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
    template = TEMPLATE.replace("PLACEHOLDER", kind.specials[0])
    (folder / "chat_template.jinja").write_text(template)
    (folder / "preprocessor_config.json").write_text(json.dumps(kind.processor))
    sizes = {name: value for name, value in COMMON.items() if not name.endswith("token_id")}
    fields = dict(kind.config)
    own = {**sizes, "vocab_size": 400, "pad_token_id": 0, **fields.pop("text_config")}
    torch.manual_seed(4)
    config = transformers.AutoConfig.for_model(
        fields.pop("model_type"),
        text_config=own,
        image_token_index=backend.token_to_id(kind.soft),
        tie_word_embeddings=bool(kind.offset),
        **fields,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, kind.offset)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if kind.offset and "vision_tower" in name and "norm" in name and "weight" in name:
                p.add_(1)
    model.save_pretrained(folder)
    return model


def messages_of(images: list[Any]) -> list[dict[str, Any]]:
    urls = [url_of(file_of(image)) for image in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    between = [piece for part in parts for piece in (part, text("and"))]
    return [{"role": "user", "content": [*between[:-1], text(" What is it?")]}]


def expected(kind: Kind, model: Any, prompt: list[int], images: list[Any]) -> list[float]:
    """Log probabilities of a greedy answer to the same tokens."""
    ids, logprobs = list(prompt), []
    with torch.no_grad():
        for _ in range(TOKENS):
            tokens = torch.tensor([ids])
            given = kind.pixels(images, tokens, model.config.image_token_index)
            logits = model(input_ids=tokens, **given).logits[0, -1].log_softmax(-1)
            ids.append(int(logits.argmax()))
            logprobs.append(float(logits.max()))
    return logprobs


@pytest.mark.parametrize("sizes", [[(40, 24)], [(64, 64), (50, 90), (17, 9)]], ids=str)
def test_answers_are_those_of_transformers(seeing, sizes):
    kind, folder, model = seeing
    images = [picture(*size, seed=i) for i, size in enumerate(sizes)]
    messages = messages_of(images)
    with MLCEngine(compiled(folder), threads=1) as engine:
        prompt = engine.loaded.prompt({"messages": messages}, Caller())
        for _ in range(2):  # the second from the prefix cache
            answer = engine.chat.completions.create(
                messages=messages,
                max_tokens=TOKENS,
                temperature=0,
                logprobs=True,
                ignore_eos=True,
            )
            got = [one.logprob for one in answer.choices[0].logprobs.content]
            assert answer.usage.prompt_tokens == len(prompt)
            np.testing.assert_allclose(got, expected(kind, model, prompt, images), atol=1e-4)
        assert engine.stats().images_encoded == len(images)
