"""Models that see against transformers: features of tiles, and logits with them in a prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from wherry.artifact.manifest import VISION, read_manifest
from wherry.artifact.variants import tower_for
from wherry.compiler.api import convert_model

from ..support.tiny_models import COMMON, Runner, compiled, randomise

TOLERANCE = 2e-4  # relative to the largest number, float32
PLACEHOLDER = 300  # id of the token in whose place features stand


@dataclass
class Case:
    model_type: str
    vision: dict[str, Any]
    text: dict[str, Any]
    scale_factor: int

    @property
    def features_of_tile(self) -> int:
        side = self.vision["image_size"] // self.vision["patch_size"]
        return (side // self.scale_factor) ** 2


CASES = {
    "smolvlm": Case(
        "smolvlm",
        {
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "image_size": 32,
            "patch_size": 4,
        },
        {},
        scale_factor=4,
    ),
    "idefics3": Case(  # heads of 72 elements, as of SigLIP so400m, and tied embeddings
        "idefics3",
        {
            "hidden_size": 144,
            "intermediate_size": 61,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "image_size": 42,
            "patch_size": 7,
        },
        {"tie_word_embeddings": True, "num_hidden_layers": 3, "num_key_value_heads": 4},
        scale_factor=3,
    ),
}


# tests/targets/test_towers.py has the other one by day, on a device
@pytest.fixture(
    scope="module",
    params=[n if n == "smolvlm" else pytest.param(n, marks=pytest.mark.nightly) for n in CASES],
)
def seen(request, tmp_path_factory):
    """(case, compiled folder, transformers' model, three tiles [3, h, w])."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model, tiles = save(folder, case)
    return case, compiled(folder), model, tiles


def save(folder: Path, case: Case) -> tuple[torch.nn.Module, list[np.ndarray]]:
    torch.manual_seed(4)
    text = {"model_type": "llama", **COMMON, **case.text}
    config = transformers.AutoConfig.for_model(
        case.model_type,
        text_config=text,
        vision_config=case.vision,
        scale_factor=case.scale_factor,
        image_token_id=PLACEHOLDER,
        tie_word_embeddings=text.get("tie_word_embeddings", False),
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 0)
    model.save_pretrained(folder)
    size = case.vision["image_size"]
    processor = {"max_image_size": {"longest_edge": size}, "size": {"longest_edge": 2 * size}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    rng = np.random.default_rng(6)
    return model, [rng.uniform(-1, 1, (3, size, size)).astype(np.float32) for _ in range(3)]


def patches(case: Case, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut a tile [3, h, w] into patches [n, 3 * p * p], those of a feature after each other."""
    p, s = case.vision["patch_size"], case.scale_factor
    side = tile.shape[1] // p
    grid = tile.reshape(3, side, p, side, p).transpose(1, 3, 0, 2, 4).reshape(side, side, -1)
    places = np.arange(side * side, dtype=np.int32).reshape(side, side)

    def blocks(array: np.ndarray) -> np.ndarray:
        cut = array.reshape(side // s, s, side // s, s, -1).swapaxes(1, 2)
        return np.ascontiguousarray(cut.reshape(side * side, -1))

    return blocks(grid), blocks(places)[:, 0]


def features_of(case: Case, folder: Path, tiles: list[np.ndarray]) -> np.ndarray:
    run = Runner(folder, library=tower_for)
    return np.concatenate([run.see(*patches(case, tile)) for tile in tiles])


def expected_features(model: Any, tiles: list[np.ndarray]) -> np.ndarray:
    with torch.no_grad():
        out = model.model.get_image_features(torch.tensor(np.stack(tiles))[None])
    return torch.cat(list(out.pooler_output)).numpy()


def close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert np.abs(expected).max() > 0.5  # a comparison of zeros proves nothing
    assert np.abs(got - expected).max() <= TOLERANCE * np.abs(expected).max()


@pytest.mark.cpu
class TestTowers:
    def test_features_are_those_of_transformers(self, seen):
        case, folder, model, tiles = seen
        got = features_of(case, folder, tiles)
        close(got, expected_features(model, tiles))
        assert len(got) == 3 * case.features_of_tile

    def test_logits_of_text_between_images_are_those_of_transformers(self, seen):
        case, folder, model, tiles = seen
        tokens, rows = prompt(case, len(tiles))
        features = features_of(case, folder, tiles)
        got = Runner(folder).step({0: tokens}, images={0: rows}, features=features)[0]
        with torch.no_grad():
            expected = model(
                input_ids=torch.tensor([tokens]), pixel_values=torch.tensor(np.stack(tiles))[None]
            ).logits[0]
        close(got, expected.numpy())

    def test_chunks_have_the_same_bits(self, seen):
        case, folder, _model, tiles = seen
        tokens, rows = prompt(case, len(tiles))
        features = features_of(case, folder, tiles)
        at_once = Runner(folder).step({0: tokens}, images={0: rows}, features=features)[0]
        run, parts = Runner(folder), []
        other = list(np.random.default_rng(8).integers(3, 290, 9))
        for start in range(0, len(tokens), 5):
            part = slice(start, start + 5)
            batch = {1: other, 0: tokens[part]}
            parts.append(run.step(batch, images={0: rows[part]}, features=features)[0])
        np.testing.assert_array_equal(np.concatenate(parts), at_once)

    def test_text_alone_is_the_text_model_s(self, seen):
        _case, folder, model, _tiles = seen
        tokens = np.random.default_rng(9).integers(3, 290, 40).tolist()
        with torch.no_grad():
            expected = model(input_ids=torch.tensor([tokens])).logits[0]
        close(Runner(folder).step({0: tokens})[0], expected.numpy())


def prompt(case: Case, images: int) -> tuple[list[int], list[int]]:
    """A prompt with text before, between and after images: its tokens, and rows of features."""
    rng = np.random.default_rng(7)
    tokens: list[int] = rng.integers(3, 290, 4).tolist()
    rows = [-1] * len(tokens)
    for image in range(images):
        n = case.features_of_tile
        tokens += [PLACEHOLDER] * n + rng.integers(3, 290, 3).tolist()
        rows += [*range(image * n, image * n + n), -1, -1, -1]
    return tokens, rows


def test_the_folder_says_what_a_runtime_needs(seen):
    case, folder, _model, _tiles = seen
    manifest = read_manifest(folder)
    assert "vision" in manifest.capabilities and tower_for(manifest) == "vision.so"
    said = json.loads((folder / VISION).read_text())
    assert said["image_token_id"] == PLACEHOLDER
    assert said["image_seq_len"] == case.features_of_tile
    assert said["processor"]["size"] == {"longest_edge": 2 * case.vision["image_size"]}
    assert said["processor"]["resample"] == 1


def test_without_an_image_processor_only_text_is_read(tmp_path, caplog):
    case = CASES["smolvlm"]
    save(tmp_path / "model", case)
    (tmp_path / "model" / "preprocessor_config.json").unlink()
    out = convert_model(str(tmp_path / "model"), tmp_path / "out")
    assert not (out / VISION).exists()
    assert "vision_model" in caplog.text


def test_the_tower_keeps_its_floats_and_has_shards_of_its_own(tmp_path):
    case = CASES["smolvlm"]
    save(tmp_path / "model", case)
    out = convert_model(str(tmp_path / "model"), tmp_path / "out", quant="q4f16_1")
    index = json.loads((out / "tensor-cache.json").read_text())
    shards = [{r["name"].startswith("vision.") for r in s["records"]} for s in index["records"]]
    assert {True} in shards and {False} in shards and {True, False} not in shards
    tower = [r for s in index["records"] for r in s["records"] if r["name"].startswith("vision.")]
    assert {r["dtype"] for r in tower} == {"float16"}
