"""LFM2-VL with images of any sides, against transformers."""

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
from wherry.models.towers.siglip2 import taps

from ..support.tiny_models import COMMON, Runner, compiled, randomise
from .test_towers import close

IMAGE = 300  # id of the token in whose place features stand
PROCESSOR = {
    "encoder_patch_size": 4,
    "tile_size": 32,
    "min_image_tokens": 4,
    "max_image_tokens": 16,
}


@dataclass
class Case:
    vision: dict[str, Any]
    grids: list[tuple[int, int]]  # rows and columns of patches of tiles
    square: int = 2
    fields: dict[str, Any] = field(default_factory=dict)

    def features(self, grid: tuple[int, int]) -> int:
        return grid[0] * grid[1] // self.square**2


CASES = {
    "lfm2_vl": Case(
        {
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "patch_size": 4,
            "num_patches": 36,
        },
        grids=[(8, 8), (2, 12), (10, 4)],
        fields={"projector_hidden_size": 60},
    ),
    "lfm2_5_vl": Case(
        {
            "hidden_size": 32,
            "intermediate_size": 61,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "patch_size": 4,
            "num_patches": 81,
            "vision_use_head": False,
        },
        grids=[(4, 6), (8, 2), (6, 6)],
        fields={
            "projector_hidden_size": 40,
            "projector_use_layernorm": False,
            "projector_bias": False,
            "projector_hidden_act": "relu",
        },
    ),
}
NAMES = [
    pytest.param(name, marks=() if name == "lfm2_vl" else pytest.mark.nightly) for name in CASES
]


@pytest.fixture(scope="module", params=NAMES)
def seen(request, tmp_path_factory):
    """(case, compiled folder, transformers' model, tiles [3, h, w])."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model, tiles = save(folder, case)
    return case, compiled(folder), model, tiles


def save(folder: Path, case: Case) -> tuple[torch.nn.Module, list[np.ndarray]]:
    torch.manual_seed(4)
    text = {**COMMON, "model_type": "lfm2", "num_hidden_layers": 3, "full_attn_idxs": [1]}
    config = transformers.AutoConfig.for_model(
        "lfm2_vl",
        text_config={**text, "block_multiple_of": 8},
        vision_config=case.vision,
        image_token_id=IMAGE,
        downsample_factor=case.square,
        **case.fields,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 0)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    rng, p = np.random.default_rng(6), case.vision["patch_size"]
    shapes = [(3, rows * p, columns * p) for rows, columns in case.grids]
    return model, [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def filters(size: int, side: int) -> np.ndarray:
    """The weights [size, side] of torch's bilinear filter with antialias, of float64."""
    scale = side / size
    support = max(scale, 1.0)
    centres = scale * (np.arange(size)[:, None] + 0.5)
    distances = np.abs(np.arange(side)[None] + 0.5 - centres) / support
    weights = np.maximum(1 - distances, 0)
    return weights / weights.sum(1, keepdims=True)


def inputs(case: Case, tile: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """The patches of a tile, those of a feature after each other, and their `count` taps."""
    p, s = case.vision["patch_size"], case.square
    rows, columns = tile.shape[1] // p, tile.shape[2] // p
    side = int(case.vision["num_patches"] ** 0.5)
    grid = tile.reshape(3, rows, p, columns, p).transpose(1, 3, 0, 2, 4)
    both = np.einsum("ra,cb->rcab", filters(rows, side), filters(columns, side))
    weights = both.reshape(rows, columns, -1)
    order = np.argsort(weights == 0, axis=-1, kind="stable")[..., :count]
    assert (np.count_nonzero(weights, axis=-1) <= count).all()
    taken = np.take_along_axis(weights, order, -1)

    def squares(array: np.ndarray, dtype: str) -> np.ndarray:
        cut = array.reshape(rows // s, s, columns // s, s, -1).swapaxes(1, 2)
        return np.ascontiguousarray(cut.reshape(rows * columns, -1).astype(dtype))

    return {
        "patches": squares(grid, "float32"),
        "positions": squares(order, "int32"),
        "position_weights": squares(taken, "float32"),
    }


def features_of(case: Case, run: Runner, tiles: list[np.ndarray]) -> np.ndarray:
    count = run.metadata["position_taps"]
    return np.concatenate([run.see(**inputs(case, tile, count)) for tile in tiles])


def pixels(case: Case, tiles: list[np.ndarray]) -> dict[str, torch.Tensor]:
    """Patches as transformers' processor pads them."""
    p, most = case.vision["patch_size"], max(rows * columns for rows, columns in case.grids)
    values = np.zeros((len(tiles), most, 3 * p * p), np.float32)
    mask, shapes = np.zeros((len(tiles), most), np.int64), []
    for i, tile in enumerate(tiles):
        rows, columns = tile.shape[1] // p, tile.shape[2] // p
        cut = tile.reshape(3, rows, p, columns, p).transpose(1, 3, 2, 4, 0)
        values[i, : rows * columns] = cut.reshape(rows * columns, -1)
        mask[i, : rows * columns] = 1
        shapes.append((rows, columns))
    given = {"pixel_values": values, "pixel_attention_mask": mask, "spatial_shapes": shapes}
    return {name: torch.tensor(np.array(value)) for name, value in given.items()}


def prompt(case: Case, count: int) -> tuple[list[int], list[int]]:
    """A prompt with text before, between and after images: its tokens, and rows of features."""
    rng = np.random.default_rng(7)
    tokens: list[int] = rng.integers(3, 290, 4).tolist()
    rows, features = [-1] * len(tokens), 0
    for grid in case.grids[:count]:
        n = case.features(grid)
        tokens += [IMAGE] * n + rng.integers(3, 290, 3).tolist()
        rows += [*range(features, features + n), -1, -1, -1]
        features += n
    return tokens, rows


@pytest.mark.cpu
class TestLfm2Vl:
    def test_features_are_those_of_transformers(self, seen):
        case, folder, model, tiles = seen
        got = features_of(case, Runner(folder, library=tower_for), tiles)
        with torch.no_grad():
            out = model.model.get_image_features(**pixels(case, tiles)).pooler_output
        close(got, torch.cat(list(out)).numpy())

    @pytest.mark.parametrize("count", [1, 3])
    def test_logits_are_those_of_transformers_in_any_chunks(self, seen, count):
        case, folder, model, tiles = seen
        tokens, rows = prompt(case, count)
        features = features_of(case, Runner(folder, library=tower_for), tiles[:count])
        got = Runner(folder).step({0: tokens}, images={0: rows}, features=features)[0]
        with torch.no_grad():
            given = pixels(case, tiles[:count])
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
        case, folder, _model, _tiles = seen
        assert "vision" in read_manifest(folder).capabilities
        said = json.loads((folder / VISION).read_text())
        assert said["model_type"] == "lfm2_vl" and said["downsample_factor"] == case.square
        metadata = Runner(folder, library=tower_for).metadata
        assert said["position_taps"] == metadata["position_taps"] > 4
        assert said["processor"]["tile_size"] == 32 and said["image_token_id"] == IMAGE


@pytest.mark.parametrize("side", [6, 16])
def test_taps_are_those_of_torch(side):
    for size in range(1, 40):
        table = torch.eye(side, dtype=torch.float64)[None, :, :, None].repeat(1, 1, 1, 3)
        resized = torch.nn.functional.interpolate(
            table, size=(size, 3), mode="bilinear", align_corners=False, antialias=True
        )[0, :, :, 0].T
        assert (resized > 1e-12).sum(1).max() <= taps(size, side)
        np.testing.assert_allclose(resized.numpy(), filters(size, side), atol=1e-6)
