"""Gemma 3 with images against transformers: rows of an image attend to all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from wherry.artifact.manifest import VISION, read_manifest
from wherry.artifact.variants import tower_for

from ..support.tiny_models import COMMON, Runner, compiled, randomise
from .test_towers import close

IMAGE = 300  # id of the token in whose place features stand


@dataclass
class Case:
    vision: dict[str, Any]
    text: dict[str, Any]
    tokens: int  # of an image

    @property
    def side(self) -> int:
        """Patches of a side."""
        return self.vision["image_size"] // self.vision["patch_size"]


CASES = {
    "gemma3": Case(
        {
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "image_size": 32,
            "patch_size": 4,
            "layer_norm_eps": 1e-3,
        },
        # A window that begins inside of images and before them, and layers without one.
        {
            "head_dim": 16,
            "query_pre_attn_scalar": 24,
            "sliding_window": 9,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "num_hidden_layers": 3,
        },
        tokens=16,
    ),
    "wide": Case(  # heads of 72 elements, as of SigLIP so400m; images longer than a block
        {
            "hidden_size": 144,
            "intermediate_size": 61,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 72,
            "patch_size": 4,
        },
        {
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": 40,
            "layer_types": ["sliding_attention", "full_attention"],
            "max_position_embeddings": 512,
        },
        tokens=81,
    ),
}
NAMES = [
    pytest.param(name, marks=() if name == "gemma3" else pytest.mark.nightly) for name in CASES
]


@pytest.fixture(scope="module", params=NAMES)
def seen(request, tmp_path_factory):
    """(case, compiled folder, transformers' model, images [3, h, w])."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model, images = save(folder, case)
    return case, compiled(folder), model, images


def save(folder: Path, case: Case) -> tuple[torch.nn.Module, list[np.ndarray]]:
    torch.manual_seed(4)
    sizes = {name: value for name, value in COMMON.items() if not name.endswith("token_id")}
    config = transformers.AutoConfig.for_model(
        "gemma3",
        text_config={**sizes, "pad_token_id": 0, **case.text},
        vision_config=case.vision,
        mm_tokens_per_image=case.tokens,
        image_token_index=IMAGE,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 1)
    with torch.no_grad():  # the tower's norms have no offset
        for name, p in model.named_parameters():
            if "vision_tower" in name and "norm" in name and name.endswith("weight"):
                p.add_(1)
    model.save_pretrained(folder)
    size = case.vision["image_size"]
    processor = {"size": {"height": size, "width": size}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    rng = np.random.default_rng(6)
    return model, [rng.uniform(-1, 1, (3, size, size)).astype(np.float32) for _ in range(3)]


def patches(case: Case, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut an image [3, h, w] into patches [n, 3 * p * p], those of a feature after each other.

    Returns them with their places in the table of positions.
    """
    p, side = case.vision["patch_size"], case.side
    s = side // int(case.tokens**0.5)
    grid = image.reshape(3, side, p, side, p).transpose(1, 3, 0, 2, 4)
    places = np.arange(side * side, dtype=np.int32)

    def squares(array: np.ndarray) -> np.ndarray:
        cut = array.reshape(side // s, s, side // s, s, -1).swapaxes(1, 2)
        return np.ascontiguousarray(cut.reshape(side * side, -1))

    return squares(grid), squares(places)[:, 0]


def features_of(case: Case, run: Runner, images: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([run.see(*patches(case, image)) for image in images])


@dataclass
class Prompt:
    """A prompt with text before, between and after images."""

    tokens: list[int]
    rows: list[int]  # of features, or -1
    last_visible: np.ndarray

    @classmethod
    def of(cls, case: Case, images: int) -> Prompt:
        rng = np.random.default_rng(7)
        tokens: list[int] = rng.integers(3, 290, 4).tolist()
        rows = [-1] * len(tokens)
        last = [*range(len(tokens))]
        for image in range(images):
            n = case.tokens
            last += [len(tokens) + n - 1] * n + [len(tokens) + n + i for i in range(3)]
            tokens += [IMAGE] * n + rng.integers(3, 290, 3).tolist()
            rows += [*range(image * n, image * n + n), -1, -1, -1]
        return cls(tokens, rows, np.array(last, np.int32))

    def step(self, run: Runner, part: slice, features: np.ndarray, **others: Any) -> np.ndarray:
        """Logits of some tokens, beside other sequences."""
        return run.step(
            {**others.get("other", {}), 0: self.tokens[part]},
            images={0: self.rows[part]},
            features=features,
            last_visible={0: self.last_visible[part]},
        )[0]

    @property
    def cuts(self) -> list[int]:
        """Where chunks may end: every three tokens, but not inside of an image."""
        n = len(self.tokens)
        return [i for i in range(n) if i % 3 == 0 and (i == 0 or self.last_visible[i - 1] < i)] + [
            n
        ]


def expected_logits(model: Any, prompt: Prompt, images: list[np.ndarray]) -> np.ndarray:
    ids = torch.tensor([prompt.tokens])
    with torch.no_grad():
        out = model(
            input_ids=ids,
            pixel_values=torch.tensor(np.stack(images)),
            token_type_ids=(ids == IMAGE).int(),
        )
    return out.logits[0].numpy()


@pytest.mark.cpu
class TestGemma3:
    def test_features_are_those_of_transformers(self, seen):
        case, folder, model, images = seen
        got = features_of(case, Runner(folder, library=tower_for), images)
        with torch.no_grad():
            out = model.model.get_image_features(torch.tensor(np.stack(images))).pooler_output
        close(got, out.reshape(-1, out.shape[-1]).numpy())
        assert len(got) == 3 * case.tokens

    @pytest.mark.parametrize("count", [1, 3])
    def test_logits_are_those_of_transformers_in_any_chunks(self, seen, count):
        case, folder, model, images = seen
        prompt = Prompt.of(case, count)
        features = features_of(case, Runner(folder, library=tower_for), images[:count])
        everything = slice(0, len(prompt.tokens))
        got = prompt.step(Runner(folder), everything, features)
        close(got, expected_logits(model, prompt, images[:count]))
        other = {1: np.random.default_rng(8).integers(3, 290, 9).tolist()}
        run, parts = Runner(folder), []
        for start, stop in pairwise(prompt.cuts):
            parts.append(prompt.step(run, slice(start, stop), features, other=other))
        assert len(parts) >= 3
        np.testing.assert_array_equal(np.concatenate(parts), got)

    def test_a_hit_of_the_prefix_cache_may_end_inside_of_an_image(self, seen):
        case, folder, _model, images = seen
        prompt = Prompt.of(case, 1)
        features = features_of(case, Runner(folder, library=tower_for), images[:1])
        run, n = Runner(folder), len(prompt.tokens)
        at_once = prompt.step(run, slice(0, n), features)
        run.fork(0, 1, 16)
        assert prompt.rows[15] >= 0 and prompt.rows[16] >= 0
        rest = run.step(
            {1: prompt.tokens[16:]},
            images={1: prompt.rows[16:]},
            features=features,
            last_visible={1: prompt.last_visible[16:]},
        )[1]
        np.testing.assert_array_equal(rest, at_once[16:])

    def test_text_alone_is_the_text_model_s(self, seen):
        _case, folder, model, _images = seen
        tokens = np.random.default_rng(9).integers(3, 290, 40).tolist()
        with torch.no_grad():
            expected = model(input_ids=torch.tensor([tokens])).logits[0]
        close(Runner(folder).step({0: tokens})[0], expected.numpy())

    def test_the_folder_says_what_a_runtime_needs(self, seen):
        case, folder, _model, _images = seen
        assert "vision" in read_manifest(folder).capabilities
        metadata = Runner(folder).metadata
        assert metadata["inputs"][4:6] == ["image_rows", "last_visible"]
        said = json.loads((folder / VISION).read_text())
        assert said["model_type"] == "gemma3" and said["mm_tokens_per_image"] == case.tokens
        assert said["image_token_id"] == IMAGE and said["processor"]["resample"] == 2
        size = case.vision["image_size"]
        assert said["vision_config"] == {"image_size": size, "patch_size": 4}
