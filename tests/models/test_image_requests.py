"""Requests with images in the core against transformers: greedy tokens, however steps are cut."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wherry.artifact.manifest import read_manifest
from wherry.artifact.variants import library_for, tower_for
from wherry.runtime.core.records import Image

from ..engine import core as abi
from ..support.tiny_models import compiled
from .test_towers import CASES, Case, patches, prompt, save

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).parents[2]
TOKENS = 8


@pytest.fixture(scope="module")
def core():
    path = ROOT / "build" / "dev" / "libwherry.so"
    assert path.is_file(), "build the core: cmake --preset dev && cmake --build --preset dev"
    return abi.load_library(path)


class Images:
    """The records of a prompt's images, and the arrays to which they point."""

    def __init__(self, case: Case, tiles: list[np.ndarray], rows: list[int]) -> None:
        self.table = np.stack([(np.arange(256) / 255 - 0.5) / 0.5] * 3).astype("float32")
        self.records = (Image * len(tiles))()
        self._arrays: list[np.ndarray] = []
        for i, (record, tile) in enumerate(zip(self.records, tiles, strict=True)):
            cut, places = patches(case, tile)
            record.first = rows.index(i * case.features_of_tile)
            record.rows = case.features_of_tile
            record.digest[0] = i + 1
            record.patches = self._pointer(cut, ctypes.c_uint8)
            record.n_patches, record.patch_bytes = cut.shape
            record.levels = self._pointer(self.table, ctypes.c_float)
            record.positions = self._pointer(places, ctypes.c_int32)

    def _pointer(self, array: np.ndarray, kind: Any) -> Any:
        array = np.ascontiguousarray(array)
        self._arrays.append(array)
        return array.ctypes.data_as(ctypes.POINTER(kind))

    def params(self) -> dict[str, Any]:
        first = ctypes.cast(self.records, ctypes.POINTER(Image))
        return {"images": first, "n_images": len(self.records)}


def greedy(model: Any, tokens: list[int], pixels: np.ndarray) -> list[int]:
    ids = torch.tensor([tokens])
    with torch.no_grad():
        for _ in range(TOKENS):
            logits = model(input_ids=ids, pixel_values=torch.tensor(pixels)[None]).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return ids[0, len(tokens) :].tolist()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.by_day("smolvlm")
def test_tokens_are_those_of_transformers(core, name, tmp_path):
    case = CASES[name]
    trained, _ = save(tmp_path, case)
    folder = compiled(tmp_path)
    manifest = read_manifest(folder)
    size = case.vision["image_size"]
    rng = np.random.default_rng(6)
    tiles = [rng.integers(0, 256, (3, size, size)).astype("uint8") for _ in range(3)]
    tokens, rows = prompt(case, len(tiles))
    images = Images(case, tiles, rows)
    expected = greedy(trained, tokens, images.table[0][np.stack(tiles)])
    options = {"vision": str(folder / tower_for(manifest)), "threads": 1}
    model = abi.Model(core, folder / library_for(manifest), folder, options)
    for config in (
        {},
        {"max_batch": 2, "prefill_chunk": 8},
        {"max_batch": 2, "image_rows": case.features_of_tile},
        {"max_batch": 2, "prefix_cache": False},
    ):
        given = images.params() | {"temperature": 0, "max_tokens": TOKENS}
        assert model.generate([tokens] * 3, config, **given) == [expected] * 3
    assert model.generate([tokens], {}, temperature=0, max_tokens=TOKENS) != [expected]
    model.free()
