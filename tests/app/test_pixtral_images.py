"""app/image of Pixtral and Mistral 3: pixels, places and prompts against transformers on Pillow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image
from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil

from ..support.images import ImageProcessor, cut, random_image, with_value


def vision_settings(edge: int, patch: int, merge: int, **changes: Any) -> dict[str, Any]:
    """wherry-vision.json with the defaults of transformers' image processor, and changes."""
    processor = PixtralImageProcessorPil(
        size={"longest_edge": edge}, patch_size={"height": patch, "width": patch}, **changes
    )
    return {
        "model_type": "pixtral",
        "processor": processor.to_dict(),
        "spatial_merge_size": merge,
        "image_token": "[IMG]",
        "image_token_id": 10,
        "image_break_token": "[IMG_BREAK]",
        "image_end_token": "[IMG_END]",
        "library": "vision.so",
    }


SETTINGS = {
    "published": vision_settings(1540, 14, 2),
    "small": vision_settings(100, 4, 2),
    "no merge": vision_settings(64, 8, 1, resample=2, do_normalize=False),
}
SMALL = [
    (1, 1), (1, 64), (64, 1), (64, 64), (100, 100), (101, 100), (99, 7), (97, 211), (333, 250),
]  # fmt: skip
CASES = [(name, size) for name in ("small", "no merge") for size in SMALL]
NIGHTLY = [
    pytest.param("published", size, marks=pytest.mark.nightly)
    for size in [(1, 1), (1540, 1540), (1541, 2), (1024, 1536), (4000, 3000)]
]


def reference(settings: dict[str, Any], pixels: np.ndarray) -> tuple[np.ndarray, str]:
    """transformers' pixel values [3, h, w], and the text of the prompt."""
    factor = settings["processor"]["patch_size"]["height"] * settings["spatial_merge_size"]
    processor = PixtralImageProcessorPil(**settings["processor"])
    # PixtralProcessor gives the image processor its patch size and merge size.
    result = processor(Image.fromarray(pixels), patch_size=factor, return_tensors="np")
    [(height, width)] = result["image_sizes"]
    # PixtralProcessor.replace_image_token, which needs torchvision to be imported.
    tokens = ([["[IMG]"] * (width // factor) + ["[IMG_BREAK]"]]) * (height // factor)
    prompt = "".join(token for line in tokens for token in line)
    return result["pixel_values"][0], prompt.removesuffix("[IMG_BREAK]") + "[IMG_END]"


@pytest.mark.parametrize(("name", "size"), [*CASES, *NIGHTLY])
def test_an_image_equals_transformers(name, size):
    settings = SETTINGS[name]
    patch, merge = settings["processor"]["patch_size"]["height"], settings["spatial_merge_size"]
    pixels = random_image(size)
    prepared = ImageProcessor(settings).prepare(pixels)
    values, prompt = reference(settings, pixels)
    (tile,) = prepared.tiles
    assert np.array_equal(prepared.values(tile), cut(values, patch, merge))
    assert prepared.text == prompt
    rows, columns = (side // patch for side in values.shape[1:])
    places = np.stack(np.mgrid[:rows, :columns]).repeat(patch, 1).repeat(patch, 2)
    places = np.concatenate([places, places[:1]])  # three channels, as cut() takes
    assert np.array_equal(tile.coordinates, cut(places, patch, merge)[:, :: patch**2][:, :2])
    assert tile.positions is None and tile.position_weights is None and tile.grid == (0, 0)
    spans = [part for part in prepared.prompt if part.tile == 0]
    length = columns // merge
    assert [part.rows for part in spans] == [length] * (rows // merge)
    assert [part.first_row for part in spans] == [i * length for i in range(rows // merge)]
    assert tile.rows == sum(part.rows for part in spans)


@pytest.mark.parametrize(("size", "lines"), [((1000, 1), 1), ((1, 1000), 13)])
def test_a_thin_image_has_a_row_of_features(size, lines):
    """Where transformers has a height or width of 0."""
    with pytest.raises(ValueError, match="Size must contain"):
        reference(SETTINGS["small"], random_image(size))
    prepared = ImageProcessor(SETTINGS["small"]).prepare(random_image(size))
    assert prepared.tiles[0].rows == 13
    assert len(prepared.prompt) == 2 * lines


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("processor.size", {"height": 64, "width": 64}),
        ("processor.size.longest_edge", 4097),
        ("processor.patch_size.width", 8),
        ("processor.patch_size", 4),
        ("processor.do_center_crop", True),
        ("spatial_merge_size", None),
        ("image_break_token", ""),
        ("image_end_token", None),
    ],
)
def test_settings_that_cannot_be_used_are_named(path, value):
    with pytest.raises(ValueError, match=path):
        ImageProcessor(with_value(SETTINGS["small"], path, value))


def test_low_detail_has_a_shorter_edge():
    settings, pixels = vision_settings(1540, 14, 2), random_image((700, 600))
    full, low = (ImageProcessor(settings).prepare(pixels, low) for low in (False, True))
    other = ImageProcessor(vision_settings(512, 14, 2)).prepare(pixels)
    assert low.tiles[0].digest == other.tiles[0].digest
    assert low.tiles[0].rows < full.tiles[0].rows
