"""Mistral Small 3, Ministral 3 and Pixtral with images, against transformers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
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

IMAGE, BREAK, END = 300, 301, 302  # ids of tokens


@dataclass
class Case:
    model_type: str
    vision: dict[str, Any]
    text: dict[str, Any]
    merge: int
    sizes: list[tuple[int, int]]  # height and width of images, in pixels
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def patch(self) -> int:
        return self.vision["patch_size"]

    def lines(self, size: tuple[int, int]) -> tuple[int, int]:
        """Lines of an image's features, and features of a line."""
        return size[0] // self.patch // self.merge, size[1] // self.patch // self.merge


CASES = {
    "mistral3": Case(
        "mistral3",
        {
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "image_size": 32,
            "patch_size": 4,
        },
        {"model_type": "mistral", "sliding_window": None, "rms_norm_eps": 1e-3},
        merge=2,
        sizes=[(16, 24), (8, 16), (32, 8)],
    ),
    "ministral3": Case(
        "mistral3",
        {
            "hidden_size": 80,
            "intermediate_size": 61,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": 42,
            "patch_size": 7,
            "hidden_act": "silu",
            "rope_parameters": {"rope_type": "axial", "rope_theta": 300.0},
        },
        {"model_type": "ministral3", "head_dim": 16, "rms_norm_eps": 1e-3},
        merge=3,
        sizes=[(42, 21), (42, 42), (21, 42)],
        fields={"multimodal_projector_bias": True, "projector_hidden_act": "relu"},
    ),
    "llava": Case(  # Pixtral 12B's layout
        "llava",
        {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 8,
            "hidden_act": "silu",
        },
        {"model_type": "mistral", "sliding_window": None},
        merge=1,
        sizes=[(16, 32), (8, 24), (32, 8)],
        fields={"vision_feature_layer": -1, "vision_feature_select_strategy": "full"},
    ),
}
NAMES = [
    pytest.param(name, marks=() if name == "mistral3" else pytest.mark.nightly) for name in CASES
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
    config = transformers.AutoConfig.for_model(
        case.model_type,
        text_config={**COMMON, **case.text},
        vision_config={"model_type": "pixtral", **case.vision},
        image_token_index=IMAGE,
        tie_word_embeddings=False,
        **({"spatial_merge_size": case.merge} if case.model_type == "mistral3" else {}),
        **case.fields,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 0)
    model.save_pretrained(folder)
    size = {"longest_edge": case.vision["image_size"]}
    (folder / "preprocessor_config.json").write_text(json.dumps({"size": size}))
    rng = np.random.default_rng(6)
    return model, [rng.uniform(-1, 1, (3, *size)).astype(np.float32) for size in case.sizes]


def patches(case: Case, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut an image [3, h, w] into patches [n, 3 * p * p], those of a feature after each other.

    Returns them with the row and column of each.
    """
    p, s = case.patch, case.merge
    rows, columns = image.shape[1] // p, image.shape[2] // p
    grid = image.reshape(3, rows, p, columns, p).transpose(1, 3, 0, 2, 4)
    places = np.stack(np.meshgrid(range(rows), range(columns), indexing="ij"), -1)

    def squares(array: np.ndarray, dtype: str) -> np.ndarray:
        cut = array.reshape(rows // s, s, columns // s, s, -1).swapaxes(1, 2)
        return np.ascontiguousarray(cut.reshape(rows * columns, -1).astype(dtype))

    return squares(grid, "float32"), squares(places, "int32")


def features_of(case: Case, run: Runner, images: list[np.ndarray]) -> np.ndarray:
    cut = [patches(case, image) for image in images]
    return np.concatenate([run.see(own, coordinates=places) for own, places in cut])


def pixels(images: list[np.ndarray]) -> dict[str, torch.Tensor]:
    """Images as transformers' processor pads them."""
    sizes = [image.shape[1:] for image in images]
    batch = np.full((len(images), 3, *np.max(sizes, 0)), 7, np.float32)
    for own, image in zip(batch, images, strict=True):
        own[:, : image.shape[1], : image.shape[2]] = image
    return {"pixel_values": torch.tensor(batch), "image_sizes": torch.tensor(sizes)}


def prompt(case: Case, count: int) -> tuple[list[int], list[int]]:
    """A prompt with text before, between and after images: its tokens, and rows of features."""
    rng = np.random.default_rng(7)
    tokens: list[int] = rng.integers(3, 290, 4).tolist()
    rows, features = [-1] * len(tokens), 0
    for size in case.sizes[:count]:
        lines, columns = case.lines(size)
        for line in range(lines):
            tokens += [IMAGE] * columns + [END if line == lines - 1 else BREAK]
            rows += [*range(features, features + columns), -1]
            features += columns
        tokens += rng.integers(3, 290, 3).tolist()
        rows += [-1, -1, -1]
    return tokens, rows


def expected_features(model: Any, images: list[np.ndarray]) -> np.ndarray:
    with torch.no_grad():
        parts = [model.model.get_image_features(**pixels([image])) for image in images]
    return torch.cat([row for part in parts for row in part.pooler_output]).numpy()


@pytest.mark.cpu
class TestPixtral:
    def test_features_are_those_of_transformers(self, seen):
        case, folder, model, images = seen
        got = features_of(case, Runner(folder, library=tower_for), images)
        close(got, expected_features(model, images))
        assert len(got) == sum(np.prod(case.lines(size)) for size in case.sizes)

    @pytest.mark.parametrize("count", [1, 3])
    def test_logits_are_those_of_transformers_in_any_chunks(self, seen, count):
        case, folder, model, images = seen
        tokens, rows = prompt(case, count)
        features = features_of(case, Runner(folder, library=tower_for), images[:count])
        got = Runner(folder).step({0: tokens}, images={0: rows}, features=features)[0]
        if case.merge > 1 or count == 1:  # LLaVA's features of several sizes are no batch
            with torch.no_grad():
                given = pixels(images[:count])
                expected = model(input_ids=torch.tensor([tokens]), **given).logits[0]
            close(got, expected.numpy())
        run, parts = Runner(folder), []
        other = list(np.random.default_rng(8).integers(3, 290, 9))
        for start in range(0, len(tokens), 5):
            part = slice(start, start + 5)
            batch = {1: other, 0: tokens[part]}
            parts.append(run.step(batch, images={0: rows[part]}, features=features)[0])
        np.testing.assert_array_equal(np.concatenate(parts), got)

    def test_the_folder_says_what_a_runtime_needs(self, seen):
        case, folder, _model, _images = seen
        assert "vision" in read_manifest(folder).capabilities
        said = json.loads((folder / VISION).read_text())
        assert said["model_type"] == "pixtral"
        assert said["spatial_merge_size"] == case.merge and said["image_token_id"] == IMAGE
        assert said["vision_config"] == {"patch_size": case.patch}
        assert said["processor"]["size"] == {"longest_edge": case.vision["image_size"]}
        assert said["processor"]["resample"] == 3
        assert said["processor"]["patch_size"] == {"height": case.patch, "width": case.patch}
        assert "position_taps" not in said
