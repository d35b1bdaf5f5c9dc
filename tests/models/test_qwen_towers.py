"""Qwen3-VL and Qwen3.5 with images against transformers: features, positions, logits."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from wherry.artifact.manifest import VISION, read_manifest
from wherry.artifact.variants import tower_for
from wherry.quant.scheme import find

from ..support.image_grids import Grid, Tile, rope_positions
from ..support.tiny_models import COMMON, OFFSET_NORMS, Runner, compiled, randomise, round_weights
from .families import CASES as FAMILIES
from .test_towers import close

PLACEHOLDER = 300  # id of the token in whose place features stand
FOUR_BITS = "q4f16_1"
ROPE = {"rope_type": "default", "rope_theta": 1000.0, "mrope_section": [4, 2, 2]}
SMALL = {
    "depth": 3,
    "hidden_size": 48,
    "num_heads": 2,
    "intermediate_size": 76,
    "patch_size": 4,
    "num_position_embeddings": 36,
    "out_hidden_size": 64,
}
LARGE = {  # heads of 72 elements
    **SMALL,
    "hidden_size": 144,
    "hidden_act": "gelu",
    "patch_size": 6,
    "num_position_embeddings": 25,
}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
MOE |= {"head_dim": 16, "rope_parameters": ROPE}
# A placeholder of 1 x 1 features, an extreme image, one as large as the table, any other.
GRIDS: tuple[Grid, ...] = ((2, 2), (2, 14), (6, 6), (8, 4))


@dataclass
class Case:
    model_type: str
    vision: dict[str, Any]
    text: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    # Whether the experts of a layer are [e, in, out], as on the hub; transformers saves them as
    # they are in its model.
    transposed: bool = False

    @property
    def side(self) -> int:
        return isqrt(self.vision["num_position_embeddings"])

    def tiles(self, *grids: Grid) -> list[Tile]:
        rng, p = np.random.default_rng(6), self.vision["patch_size"]
        sizes = [(3, h * p, w * p) for h, w in grids]
        return [Tile(rng.uniform(-1, 1, size).astype(np.float32), p, 2) for size in sizes]


def _of_text(name: str, **other: Any) -> dict[str, Any]:
    """A family's own test, whose layers rotate enough elements for three axes."""
    rope = {"partial_rotary_factor": 0.5, **ROPE, "mrope_section": [2, 1, 1]}
    return {**FAMILIES[name].config, "head_dim": 16, "rope_parameters": rope, **other}


CASES = {
    "qwen3_vl": Case(
        "qwen3_vl",
        {**SMALL, "deepstack_visual_indexes": [0, 2]},
        {"head_dim": 16, "rope_parameters": ROPE, "num_hidden_layers": 3},
    ),
    "qwen3_vl-large": Case(
        "qwen3_vl",
        {**LARGE, "deepstack_visual_indexes": [1], "out_hidden_size": 128},
        {
            "hidden_size": 128,
            "head_dim": 32,
            "rope_parameters": {**ROPE, "mrope_section": [6, 5, 5]},
        },
        {"tie_word_embeddings": True},
    ),
    "qwen3_vl_moe": Case(
        "qwen3_vl_moe", {**SMALL, "deepstack_visual_indexes": [1]}, MOE, transposed=True
    ),
    "qwen3_vl_moe-large": Case(
        "qwen3_vl_moe", {**LARGE, "deepstack_visual_indexes": [0, 1, 2]}, {**MOE, "num_experts": 6}
    ),
    "qwen3_5": Case("qwen3_5", SMALL, _of_text("qwen3_5_text")),
    "qwen3_5-large": Case("qwen3_5", LARGE, _of_text("qwen3_5_text", num_attention_heads=2)),
    "qwen3_5_moe": Case("qwen3_5_moe", SMALL, _of_text("qwen3_5_moe_text")),
    "qwen3_5_moe-large": Case("qwen3_5_moe", LARGE, _of_text("qwen3_5_moe_text")),
}
BY_DAY = ("qwen3_vl", "qwen3_5")
EACH = [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly) for name in CASES]


@pytest.fixture(scope="module", params=EACH)
def seen(request, tmp_path_factory):
    """(case, compiled folder, transformers' model)."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model = save(folder, case)
    return case, compiled(folder), model


def save(folder: Path, case: Case) -> torch.nn.Module:
    torch.manual_seed(4)
    sizes = {n: v for n, v in COMMON.items() if not n.endswith("token_id")}
    config = transformers.AutoConfig.for_model(
        case.model_type,
        text_config={**sizes, **case.text},
        vision_config=case.vision,
        image_token_id=PLACEHOLDER,
        video_token_id=PLACEHOLDER + 1,
        **case.config,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 1 if f"{case.model_type}_".startswith(OFFSET_NORMS) else 0)
    randomise(model.model.visual, 0)
    model.save_pretrained(folder)
    if case.transposed:
        file = folder / "model.safetensors"
        stored = load_file(file)
        for name in [n for n in stored if ".experts." in n]:
            stored[name] = stored[name].transpose(1, 2).contiguous()
        save_file(stored, file, {"format": "pt"})
    size = {"shortest_edge": 64, "longest_edge": 4096}
    own = {"patch_size": case.vision["patch_size"], "size": size, "image_mean": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(own))
    return model


def features_of(case: Case, run: Runner, tiles: list[Tile]) -> np.ndarray:
    return np.concatenate([run.see(**tile.arrays(case.side)) for tile in tiles])


def pictures(tiles: list[Tile]) -> dict[str, torch.Tensor]:
    """Images as transformers takes them: each patch twice, for two frames."""
    patches = np.concatenate([tile.patches() for tile in tiles])
    twice = np.repeat(patches.reshape(len(patches), 3, 1, -1), 2, 2).reshape(len(patches), -1)
    grids = torch.tensor([(1, *tile.grid) for tile in tiles])
    return {"pixel_values": torch.tensor(twice), "image_grid_thw": grids}


def expected_features(model: Any, tiles: list[Tile]) -> np.ndarray:
    with torch.no_grad():
        out = model.model.get_image_features(**pictures(tiles))
    columns = [out.pooler_output, *(getattr(out, "deepstack_features", None) or [])]
    return torch.cat([torch.cat(list(part)) for part in columns], -1).numpy()


@dataclass
class Prompt:
    tokens: list[int]
    rows: list[int]  # of features
    positions: np.ndarray  # [n, 3]

    def expected(self, model: Any, tiles: list[Tile]) -> np.ndarray:
        types = torch.tensor([[int(row >= 0) for row in self.rows]])
        with torch.no_grad():
            ids = torch.tensor([self.tokens])
            out = model(input_ids=ids, mm_token_type_ids=types, **pictures(tiles))
        logits: np.ndarray = out.logits[0].numpy()
        return logits


def prompt(tiles: list[Tile]) -> Prompt:
    """Text before, between and after images."""
    rng = np.random.default_rng(7)
    tokens: list[int] = rng.integers(3, 290, 4).tolist()
    parts: list[int | Grid] = [4]
    rows, seen = [-1] * 4, 0
    for tile in tiles:
        tokens += [PLACEHOLDER] * tile.features + rng.integers(3, 290, 3).tolist()
        rows += [*range(seen, seen + tile.features), -1, -1, -1]
        parts += [tile.merged, 3]
        seen += tile.features
    return Prompt(tokens, rows, rope_positions(parts))


def logits_of(run: Runner, given: Prompt, features: np.ndarray) -> np.ndarray:
    return run.step(
        {0: given.tokens},
        images={0: given.rows},
        features=features,
        rope_positions={0: given.positions},
    )[0]


@pytest.mark.cpu
class TestQwen:
    def test_features_are_those_of_transformers(self, seen):
        case, folder, model = seen
        tiles = case.tiles(*GRIDS)
        got = features_of(case, Runner(folder, library=tower_for), tiles)
        close(got, expected_features(model, tiles))

    @pytest.mark.parametrize("grids", [GRIDS[1:2], GRIDS[1:]], ids=["one", "three"])
    def test_logits_are_those_of_transformers(self, seen, grids):
        case, folder, model = seen
        tiles = case.tiles(*grids)
        given = prompt(tiles)
        features = features_of(case, Runner(folder, library=tower_for), tiles)
        got = logits_of(Runner(folder), given, features)
        close(got, given.expected(model, tiles))
        # what is wrong without the positions of the images, which the last rows feel, too
        plain = Prompt(given.tokens, given.rows, rope_positions([len(given.tokens)]))
        wrong = logits_of(Runner(folder), plain, features)
        assert np.abs(wrong[-1] - got[-1]).max() > 1e-3 * np.abs(got[-1]).max()

    def test_chunks_beside_others_have_the_same_bits(self, seen):
        case, folder, _model = seen
        tiles = case.tiles(*GRIDS[:3])
        given = prompt(tiles)
        features = features_of(case, Runner(folder, library=tower_for), tiles)
        at_once = logits_of(Runner(folder), given, features)
        run, parts = Runner(folder), []
        other = list(np.random.default_rng(8).integers(3, 290, 9))
        cuts = [0, 5, 6, 20, len(given.tokens)]
        for start, stop in pairwise(cuts):
            part = slice(start, stop)
            batch = {1: other, 0: given.tokens[part]}
            own = {"images": {0: given.rows[part]}, "rope_positions": {0: given.positions[part]}}
            parts.append(run.step(batch, features=features, **own)[0])
        np.testing.assert_array_equal(np.concatenate(parts), at_once)

    def test_text_alone_is_the_text_model_s(self, seen):
        _case, folder, model = seen
        tokens = np.random.default_rng(9).integers(3, 290, 40).tolist()
        with torch.no_grad():
            expected = model(input_ids=torch.tensor([tokens])).logits[0]
        close(Runner(folder).step({0: tokens})[0], expected.numpy())

    def test_the_folder_says_what_a_runtime_needs(self, seen):
        case, folder, _model = seen
        assert tower_for(read_manifest(folder)) == "vision.so"
        said = json.loads((folder / VISION).read_text())
        assert said["model_type"] == "qwen3_vl" and said["image_token_id"] == PLACEHOLDER
        assert said["vision_config"] == {
            "patch_size": case.vision["patch_size"],
            "spatial_merge_size": 2,
            "num_position_embeddings": case.side**2,
        }
        assert said["processor"]["size"] == {"shortest_edge": 64, "longest_edge": 4096}
        assert said["processor"]["resample"] == 3 and said["processor"]["merge_size"] == 2
        text = Runner(folder).metadata
        assert {"image_rows", "rope_positions"} < {*text["inputs"]}
        tower = Runner(folder, library=tower_for).metadata
        assert (tower["position_taps"], tower["tile_patches"]) == (4, 8192)
        deep = len(case.vision.get("deepstack_visual_indexes", ()))
        width = case.vision["out_hidden_size"] * (1 + deep)
        assert tower["image_features"] == text["image_features"] == width


def save_rounded(folder: Path, case: Case) -> torch.nn.Module:
    """`save`; the model returned has what four bits, and a tower's float16, leave of weights."""
    model = save(folder, case)
    with torch.no_grad():
        patches = model.model.visual.patch_embed.proj.weight  # whose frames are summed
        patches.copy_(patches.mean(2, keepdim=True).expand_as(patches))
        for p in model.model.visual.parameters():
            p.copy_(p.half().float())
    model.config.model_type = model.config.text_config.model_type
    text = torch.nn.ModuleDict({"model": model.model.language_model, "lm_head": model.lm_head})
    text.config = model.config.text_config
    round_weights(text, find(FOUR_BITS))
    return model


@pytest.mark.cpu
@pytest.mark.nightly
def test_four_bits_with_a_tower_of_halves(tmp_path):
    case = CASES["qwen3_vl"]
    model = save_rounded(tmp_path, case)
    folder = compiled(tmp_path, quant=FOUR_BITS, activations="float")
    tiles = case.tiles(*GRIDS[1:])
    given, tower = prompt(tiles), Runner(folder, library=tower_for)
    assert {entry["dtype"] for entry in tower.metadata["params"]} <= {"float16", "float32"}
    features = features_of(case, tower, tiles)
    close(features, expected_features(model, tiles))
    close(logits_of(Runner(folder), given, features), given.expected(model, tiles))


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_block_of_multi_token_prediction_takes_the_positions(tmp_path):
    """Its logits depend on how far rows are from each other, on each axis."""
    case = CASES["qwen3_5"]
    save(tmp_path, case)
    file, d = tmp_path / "model.safetensors", case.text.get("hidden_size", 64)
    stored, layer = load_file(file), "model.language_model.layers.3."
    block = {n.replace(layer, "mtp.layers.0."): v for n, v in stored.items() if n.startswith(layer)}
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        block[f"mtp.{name}.weight"] = torch.zeros(d)
    block["mtp.fc.weight"] = 0.1 * torch.randn(d, 2 * d)
    save_file({**stored, **{n: v.clone() for n, v in block.items()}}, file, {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    config["text_config"]["mtp_num_hidden_layers"] = 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    folder = compiled(tmp_path, mtp=True)
    tiles = case.tiles(*GRIDS[1:3])
    given = prompt(tiles)
    features = features_of(case, Runner(folder, library=tower_for), tiles)
    following = given.positions[-1:] + 1

    def drafted(shift: Any, last: Any) -> np.ndarray:
        run = Runner(folder)
        positions = given.positions + np.array(shift, np.int32)
        moved = Prompt(given.tokens, given.rows, positions)
        logits_of(run, moved, features)
        own = {0: following + np.array(last, np.int32)}
        return run.step({0: [17]}, "draft", features=features, rope_positions=own)[0]

    expected = drafted((0, 0, 0), (0, 0, 0))
    close(drafted((40, 30, 20), (40, 30, 20)), torch.tensor(expected).numpy())
    for axis in np.eye(3, dtype=int) * 9:
        assert np.abs(drafted((0, 0, 0), axis) - expected).max() > 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("model_type", ["qwen3_vl", "qwen3_5"])
def test_positions_are_those_of_transformers(model_type):
    config = transformers.AutoConfig.for_model(model_type, vision_config=SMALL)
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config).model
    rng = np.random.default_rng(3)
    for _ in range(20):
        parts: list[int | Grid] = []
        for _ in range(rng.integers(1, 5)):
            parts += [int(rng.integers(1, 9)), (*map(int, rng.integers(1, 7, 2)),)]
        parts += [int(rng.integers(0, 4))]
        types, grids = [], []
        for part in parts:
            image = isinstance(part, tuple)
            types += [int(image)] * (part[0] * part[1] if image else part)
            grids += [(1, 2 * part[0], 2 * part[1])] if image else []
        expected, delta = model.get_rope_index(
            torch.zeros((1, len(types)), dtype=torch.int64),
            mm_token_type_ids=torch.tensor([types]),
            image_grid_thw=torch.tensor(grids),
        )
        got = rope_positions(parts)
        np.testing.assert_array_equal(got, expected[:, 0].T.numpy())
        assert int(delta) == got.max() + 1 - len(types)
