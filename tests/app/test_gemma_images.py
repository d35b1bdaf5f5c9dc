"""app/image of Gemma 3: pixels, positions and prompts against transformers on Pillow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma3.processing_gemma3 import Gemma3Processor

from ..support.images import ImageProcessor, cut, random_image, with_value

BEGIN, TOKEN, END = "<start_of_image>", "<image_soft_token>", "<end_of_image>"


def vision_settings(side: int, patch: int, tokens: int, **changes: Any) -> dict[str, Any]:
    """wherry-vision.json with the defaults of transformers' image processor, and changes."""
    processor = Gemma3ImageProcessorPil(size={"height": side, "width": side}, **changes)
    return {
        "model_type": "gemma3",
        "processor": processor.to_dict(),
        "vision_config": {"image_size": side, "patch_size": patch},
        "mm_tokens_per_image": tokens,
        "boi_token": BEGIN,
        "image_token": TOKEN,
        "eoi_token": END,
        "library": "vision.so",
    }


SETTINGS = {
    "published": vision_settings(896, 14, 256),
    "small": vision_settings(64, 8, 4),
    "no pooling": vision_settings(50, 8, 36, resample=3, image_mean=[0.4, 0.5, 0.6]),
}
SMALL = [(1, 1), (1, 300), (300, 1), (64, 64), (50, 64), (97, 211), (333, 250)]
CASES = [(name, size) for name in ("small", "no pooling") for size in SMALL]
NIGHTLY = [
    pytest.param("published", size, marks=pytest.mark.nightly)
    for size in [(1, 1), (65_535, 1), (896, 896), (300, 401), (4000, 3000)]
]


@pytest.mark.parametrize(("name", "size"), [*CASES, *NIGHTLY])
def test_an_image_equals_transformers(name, size):
    settings = SETTINGS[name]
    patch, tokens = settings["vision_config"]["patch_size"], settings["mm_tokens_per_image"]
    pixels = random_image(size)
    prepared = ImageProcessor(settings).prepare(pixels)
    processor = Gemma3ImageProcessorPil(**settings["processor"])
    [values] = processor(Image.fromarray(pixels), return_tensors="np")["pixel_values"]
    side = values.shape[1] // patch
    block = side // int(tokens**0.5)
    (tile,) = prepared.tiles
    assert np.array_equal(prepared.values(tile), cut(values, patch, block))
    places = np.arange(side * side).reshape(1, side, side).repeat(3, 0)
    assert np.array_equal(tile.positions.flatten(), cut(places, 1, block)[:, 0])
    assert tile.position_weights is None and tile.coordinates is None
    assert (tile.rows, tile.grid) == (tokens, (0, 0))
    assert (prepared.placeholder, prepared.soft_token) == (BEGIN, TOKEN)
    tokenizer = SimpleNamespace(
        boi_token=BEGIN, eoi_token=END, image_token=TOKEN, boi_token_id=255_999
    )
    own = SimpleNamespace()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "transformers.processing_utils.ProcessorMixin.__init__", lambda *_, **__: None
        )
        own = Gemma3Processor(None, tokenizer, image_seq_length=tokens)
    assert prepared.text == own.replace_image_token({"num_crops": [0]}, 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("processor.do_pan_and_scan", True),
        ("processor.size", {"longest_edge": 64}),
        ("processor.size.width", 65),
        ("vision_config.image_size", 0),
        ("mm_tokens_per_image", 3),
        ("mm_tokens_per_image", 9),
        ("boi_token", None),
        ("image_token", ""),
        ("eoi_token", None),
    ],
)
def test_settings_that_cannot_be_used_are_named(path, value):
    named = "processor.size.height" if path.endswith("image_size") else path
    with pytest.raises(ValueError, match=named):
        ImageProcessor(with_value(SETTINGS["small"], path, value))


def test_pan_and_scan_may_be_named_where_it_is_off():
    settings = with_value(SETTINGS["small"], "processor.do_pan_and_scan", False)
    settings["processor"] |= {"pan_and_scan_min_crop_size": 256, "image_seq_length": 4}
    ImageProcessor(settings)
