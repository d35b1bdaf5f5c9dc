"""app/image: pixels, tiles and prompts against transformers on Pillow; settings; digests."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.idefics3.processing_idefics3 import Idefics3Processor
from transformers.models.smolvlm.configuration_smolvlm import SmolVLMVisionConfig
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.models.smolvlm.modeling_smolvlm import SmolVLMConnector, SmolVLMVisionEmbeddings
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

from wherry.compiler.towers import tower_of

from ..support.images import ImageProcessor, cut, random_image, with_value

CLASSES = {"idefics3": Idefics3ImageProcessorPil, "smolvlm": SmolVLMImageProcessorPil}


def vision_settings(
    name: str, edge: int, tile: int, patch: int, scale: int, **changes: Any
) -> dict[str, Any]:
    """wherry-vision.json with the defaults of transformers' image processor, and changes."""
    processor = CLASSES[name](
        size={"longest_edge": edge}, max_image_size={"longest_edge": tile}, **changes
    )
    return {
        "model_type": name,
        "processor": processor.to_dict(),
        "vision_config": {"image_size": tile, "patch_size": patch, "hidden_size": 768},
        "scale_factor": scale,
        "image_token": "<image>",
        "image_token_id": 49190,
        "image_seq_len": (tile // patch // scale) ** 2,
        "library": "vision.so",
    }


SETTINGS = {
    "256m": vision_settings("smolvlm", 2048, 512, 16, 4),
    "2.2b": vision_settings("smolvlm", 1536, 384, 14, 3),  # 6 pixels of a tile are in no patch
    "small": vision_settings(
        "idefics3", 256, 64, 8, 2, resample=3, image_mean=[0.48, 0.45, 0.4], image_std=[0.2, 0.3, 1]
    ),
    "odd edge": vision_settings("idefics3", 101, 48, 8, 1, resample=2),
    "one tile": vision_settings("smolvlm", 256, 64, 8, 4, do_image_splitting=False, resample=4),
    "edge of a tile": vision_settings("smolvlm", 64, 64, 8, 4, do_normalize=False),
    "levels": vision_settings("smolvlm", 128, 64, 8, 4, do_normalize=False, do_rescale=False),
}
# Tiny, extreme, exact, multiples, portrait, larger and smaller than a tile; width, height.
SIZES = [
    (1, 1), (2, 1), (1, 3), (1, 300), (300, 1), (64, 64), (128, 64), (192, 256),
    (256, 256), (257, 255), (97, 211), (700, 500), (33, 800),
]  # fmt: skip
CASES = [(name, size) for name in SETTINGS if name not in ("256m", "2.2b") for size in SIZES]
CASES += [("256m", (4000, 3000)), ("256m", (512, 512)), ("2.2b", (300, 401))]


def reference(settings: dict[str, Any], pixels: np.ndarray) -> tuple[np.ndarray, str]:
    """transformers' pixel values [tiles, 3, tile, tile] float32, and the text of the prompt."""
    processor = CLASSES[settings["model_type"]](**settings["processor"])
    result = processor(Image.fromarray(pixels), return_tensors="np", return_row_col_info=True)
    [[rows]], [[columns]] = result["rows"], result["cols"]
    texts = {
        "image_token": "<image>",
        "fake_image_token": "<fake_token_around_image>",
        "global_image_tag": "<global-img>",
        "image_seq_len": settings["image_seq_len"],
    }
    if settings["model_type"] == "idefics3":
        prompt = Idefics3Processor.replace_image_token(SimpleNamespace(**texts), result, 0)
    else:
        prompt = get_image_prompt_string(
            rows, columns, texts["image_seq_len"], texts["fake_image_token"], "<image>",
            texts["global_image_tag"],
        )  # fmt: skip
    return result["pixel_values"][0], prompt


def shuffled(side: int, scale: int) -> np.ndarray:
    """Places of patches, row by row, in the order in which transformers joins them to features."""
    connector = SimpleNamespace()
    places = torch.arange(side * side).reshape(1, side * side, 1)
    return SmolVLMConnector.pixel_shuffle(connector, places, scale).flatten().numpy()


@pytest.mark.parametrize(("name", "size"), CASES)
def test_pixels_and_prompt_equal_transformers(name, size):
    settings = SETTINGS[name]
    patch = settings["vision_config"]["patch_size"]
    pixels = random_image(size)
    prepared = ImageProcessor(settings).prepare(pixels)
    values, prompt = reference(settings, pixels)
    assert len(prepared.tiles) == len(values)
    side = settings["vision_config"]["image_size"] // patch
    order = shuffled(side, settings["scale_factor"])
    for tile, expected in zip(prepared.tiles, values, strict=True):
        assert np.array_equal(prepared.values(tile), cut(expected, patch)[order])
        assert np.array_equal(tile.positions.flatten(), order)
        assert tile.position_weights is None and tile.coordinates is None
        assert (tile.rows, tile.grid) == (settings["image_seq_len"], (0, 0))
    assert (prepared.placeholder, prepared.soft_token) == ("<image>", "<image>")
    spans = [part for part in prepared.prompt if part.tile >= 0]
    assert [part.tile for part in spans] == list(range(len(values)))
    assert {(part.first_row, part.rows) for part in spans} == {(0, settings["image_seq_len"])}
    assert prepared.text == prompt


@pytest.mark.parametrize(("image", "patch"), [(512, 16), (384, 14), (364, 14), (64, 8), (48, 8)])
def test_positions_of_a_complete_tile_are_its_patches(image, patch):
    """What transformers computes by fractions and buckets; published grids and those above."""
    config = SmolVLMVisionConfig(hidden_size=1, image_size=image, patch_size=patch)
    embeddings = SmolVLMVisionEmbeddings(config)
    side = image // patch
    with torch.no_grad():
        embeddings.position_embedding.weight[:, 0] = torch.arange(side * side)
        embeddings.patch_embedding.bias.zero_()
        mask = torch.ones(1, side, side, dtype=torch.bool)
        positions = embeddings(torch.zeros(1, 3, image, image), mask)
    assert torch.equal(positions.flatten(), torch.arange(side * side).float())


@pytest.mark.parametrize("name", SETTINGS)
def test_the_record_of_a_compiled_model_is_read(name, tmp_path):
    """What compiler/towers.py writes, of a folder with transformers' files."""
    settings = SETTINGS[name]
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings["processor"]))
    config = {key: settings[key] for key in ("model_type", "scale_factor", "vision_config")}
    tower = tower_of(tmp_path, config, hidden_size=64)
    assert tower is not None
    pixels = random_image((97, 211))
    assert digests(json.loads(tower.record()), pixels) == digests(settings, pixels)


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The small settings with other values at paths such as "processor.size"."""
    settings = SETTINGS["small"]
    for path, value in changes.items():
        settings = with_value(settings, path, value)
    return settings


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model_type", "siglip"),
        ("processor.resample", 0),
        ("processor.resample", None),
        ("processor.resample", "lanczos"),
        ("processor.size", {"height": 64, "width": 64}),
        ("processor.size", {"longest_edge": 256, "shortest_edge": 64}),
        ("processor.size.longest_edge", 0),
        ("processor.size.longest_edge", 4097),
        ("processor.size.longest_edge", 33 * 64),  # more than 32 tiles
        ("processor.size.longest_edge", 256.0),
        ("processor.max_image_size", 64),
        ("processor.max_image_size.longest_edge", 72),  # not the tower's grid
        ("processor.do_resize", False),
        ("processor.do_resize", None),
        ("processor.do_rescale", "yes"),
        ("processor.do_image_splitting", None),
        ("processor.rescale_factor", "1/255"),
        ("processor.image_mean", 0.5),
        ("processor.image_mean", [0.5, 0.5]),
        ("processor.image_std", [0.5, 0.5, "0.5"]),
        ("processor.image_std", [0.5, 0, 0.5]),
        ("processor.image_processor_type", "SiglipImageProcessor"),
        ("processor.do_center_crop", True),
        ("vision_config.patch_size", 0),
        ("vision_config.image_size", None),
        ("scale_factor", 3),
        ("scale_factor", 9),
        ("image_seq_len", 64),
        ("image_token", ""),
    ],
)
def test_settings_that_cannot_be_used_are_named(path, value):
    with pytest.raises(ValueError, match=path) as error:
        ImageProcessor(changed({path: value}))
    assert "accepted: " in str(error.value) or path == "model_type"


def test_all_mismatches_are_listed():
    settings = changed({"processor.resample": 5})
    del settings["processor"]["image_mean"]
    settings["processor"]["colour_space"] = "srgb"
    with pytest.raises(ValueError) as error:
        ImageProcessor(settings)
    _, *problems = str(error.value).splitlines()
    assert sorted(problem.strip() for problem in problems) == [
        'processor.colour_space: "srgb"; accepted: no field of this name',
        "processor.image_mean: missing; accepted: three numbers",
        "processor.resample: 5; accepted: 1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box)",
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("processor.do_convert_rgb", False),  # hosts decode to RGB
        ("processor.do_pad", False),  # tiles have one size
        ("processor.device", "cuda"),
        ("processor.video_sampling", {"fps": 1}),
        ("processor.crop_size", None),  # as if absent
    ],
)
def test_fields_that_do_not_change_pixels(path, value):
    pixels = random_image((97, 211))
    plain, other = (
        ImageProcessor(settings).prepare(pixels)
        for settings in (SETTINGS["small"], changed({path: value}))
    )
    assert [tile.digest for tile in plain.tiles] == [tile.digest for tile in other.tiles]


def digests(settings: dict[str, Any], pixels: np.ndarray) -> list[bytes]:
    return [tile.digest for tile in ImageProcessor(settings).prepare(pixels).tiles]


def test_digests_are_those_of_what_the_tower_sees():
    settings, pixels = SETTINGS["small"], random_image((256, 256))
    plain = digests(settings, pixels)
    assert plain == digests(settings, pixels)
    assert len(set(plain)) == len(plain) == 17
    other = pixels.copy()
    other[0, 0, 0] ^= 1  # in the first tile, and too little for the global image
    assert [a == b for a, b in zip(plain, digests(settings, other), strict=True)][:-1] == [
        False,
        *[True] * 15,
    ]
    white = np.full((256, 256, 3), 255, np.uint8)
    assert len(set(digests(settings, white))) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"processor.image_mean": [0.48, 0.45, 0.41]},
        {"processor.rescale_factor": 1 / 256},
        {"processor.do_normalize": False},
        {"processor.resample": 1},
        {"scale_factor": 4, "image_seq_len": 4},
        {"vision_config.patch_size": 4, "scale_factor": 4},
    ],
)
def test_settings_change_digests(changes):
    settings, pixels = SETTINGS["small"], random_image((97, 211))
    other = changed(changes)
    assert not set(digests(settings, pixels)) & set(digests(other, pixels))


def test_low_detail_is_the_image_as_one_tile():
    settings, pixels = SETTINGS["small"], random_image((97, 211))
    low = ImageProcessor(settings).prepare(pixels, low=True)
    one = changed({"processor.do_image_splitting": False})
    assert [tile.digest for tile in low.tiles] == digests(one, pixels)
    assert low.text == ImageProcessor(one).prepare(pixels).text
