"""app/image of Qwen 3-VL and Qwen 3.5: pixels, positions and prompts against transformers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.vision_utils import (
    get_vision_interpolation_indices_and_weights,
    get_vision_position_ids,
)

from ..support.images import ImageProcessor, random_image, with_value


def vision_settings(
    areas: tuple[int, int], patch: int = 16, merge: int = 2, positions: int = 2304, **changes: Any
) -> dict[str, Any]:
    """wherry-vision.json with the defaults of transformers' image processor, and changes."""
    processor = Qwen2VLImageProcessorPil(
        size={"shortest_edge": areas[0], "longest_edge": areas[1]},
        patch_size=patch, merge_size=merge, **changes,
    )  # fmt: skip
    return {
        "model_type": "qwen3_vl",
        "processor": processor.to_dict(),
        "vision_config": {
            "patch_size": patch, "spatial_merge_size": merge, "num_position_embeddings": positions,
        },
        "image_token": "<|image_pad|>",
        "image_token_id": 151655,
        "library": "vision.so",
    }  # fmt: skip


HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
SETTINGS = {
    "published": vision_settings((65_536, 16_777_216), **HALF),
    "small": vision_settings((1_024, 16_384), patch=4, positions=25),
    "one size": vision_settings((3_136, 3_136), patch=14, positions=17, resample=2),
    "no merge": vision_settings((64, 4_096), patch=8, merge=1, positions=4, do_normalize=False),
}
SMALL = [
    (1, 1), (200, 1), (3, 300), (31, 33), (64, 64), (100, 20), (20, 100), (84, 84), (97, 211),
    (12, 4), (4, 12), (500, 333),
]  # fmt: skip
# Halves of a multiple go to the even one: 80 / 32 = 2.5, 112 / 32 = 3.5.
LARGE = [(1, 1), (400, 2), (80, 112), (256, 256), (1024, 640), (4000, 3000), (6000, 4500)]
CASES = [(name, size) for name in ("small", "one size", "no merge") for size in SMALL]
NIGHTLY = [pytest.param("published", size, marks=pytest.mark.nightly) for size in LARGE]


def reference(settings: dict[str, Any], pixels: np.ndarray) -> tuple[np.ndarray, torch.Tensor, str]:
    """transformers' patches [n, 3 * patch * patch], grid [1, 3], and the text of the prompt."""
    processor = Qwen2VLImageProcessorPil(**settings["processor"])
    result = processor(Image.fromarray(pixels), return_tensors="np")
    count, patch = len(result["pixel_values"]), settings["vision_config"]["patch_size"]
    twice = result["pixel_values"].reshape(count, 3, -1, patch * patch)
    assert (twice == twice[:, :, :1]).all()
    own = SimpleNamespace(image_processor=processor, image_token=settings["image_token"])
    prompt = Qwen3VLProcessor.replace_image_token(own, result, 0)
    return twice[:, :, 0].reshape(count, -1), torch.tensor(result["image_grid_thw"]), prompt


@pytest.mark.parametrize(("name", "size"), [*CASES, ("published", (97, 211)), *NIGHTLY])
def test_an_image_equals_transformers(name, size):
    settings = SETTINGS[name]
    vision = settings["vision_config"]
    merge = vision["spatial_merge_size"]
    pixels = random_image(size)
    prepared = ImageProcessor(settings).prepare(pixels)
    values, grid, prompt = reference(settings, pixels)
    (tile,) = prepared.tiles
    assert np.array_equal(prepared.values(tile), values)
    assert prepared.text == prompt
    assert tile.grid == (grid[0, 1] // merge, grid[0, 2] // merge)
    assert tile.rows == tile.grid[0] * tile.grid[1]
    assert np.array_equal(tile.coordinates, get_vision_position_ids(grid, merge))
    side = int(vision["num_position_embeddings"] ** 0.5)
    indices, weights = get_vision_interpolation_indices_and_weights(
        grid, side, align_corners=True, spatial_merge_size=merge
    )
    assert np.array_equal(tile.positions, indices)
    assert np.array_equal(tile.position_weights, weights)


@pytest.mark.parametrize("size", [(201, 1), (2, 401), (1, 65_535)])
def test_a_thin_image_is_refused_as_in_transformers(size):
    with pytest.raises(ValueError, match="aspect ratio"):
        reference(SETTINGS["small"], random_image(size))
    with pytest.raises(ValueError, match="may be 200 times the other") as error:
        ImageProcessor(SETTINGS["small"]).prepare(random_image(size))
    assert "{} x {}".format(*size) in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("processor.size", {"longest_edge": 16_384}),
        ("processor.size", {"height": 64, "width": 64}),
        ("processor.size.shortest_edge", 16_385),  # above the other
        ("processor.size.longest_edge", 1 << 26),
        ("processor.min_pixels", 1024),
        ("processor.patch_size", 8),
        ("processor.merge_size", 1),
        ("processor.temporal_patch_size", None),
        ("processor.do_resize", False),
        ("processor.image_processor_type", "SiglipImageProcessor"),
        ("vision_config.num_position_embeddings", 0),
        ("image_token", None),
    ],
)
def test_settings_that_cannot_be_used_are_named(path, value):
    named = path.replace("processor.patch", "vision_config.patch")
    with pytest.raises(
        ValueError, match=named.replace("processor.merge_size", "spatial_merge_size")
    ):
        ImageProcessor(with_value(SETTINGS["small"], path, value))


def test_digests_know_places():
    """Two pictures of one colour have equal patches, and other features."""
    processor = ImageProcessor(SETTINGS["small"])
    wide, tall = (
        processor.prepare(np.full(shape, 9, np.uint8)).tiles[0]
        for shape in ((64, 128, 3), (128, 64, 3))
    )
    assert np.array_equal(wide.patches, tall.patches)
    assert wide.digest != tall.digest


def test_low_detail_has_a_smaller_area():
    pixels = random_image((700, 600))
    full, low = (
        ImageProcessor(SETTINGS["published"]).prepare(pixels, low) for low in (False, True)
    )
    other = vision_settings((65_536, 512 * 512), **HALF)
    assert low.tiles[0].digest == ImageProcessor(other).prepare(pixels).tiles[0].digest
    assert low.tiles[0].rows < full.tiles[0].rows
