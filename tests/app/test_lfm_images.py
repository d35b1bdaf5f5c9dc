"""app/image of LFM2-VL: pixels, positions and prompts against transformers.

Its one class needs torchvision. Here it has a module of that name without functions, and what it
calls of its base class is Pillow's.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module
from types import MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.image_processing_backends import PilBackend, TorchvisionBackend
from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor
from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionEmbeddings

from wherry.compiler.towers import tower_of

from ..support.images import ImageProcessor, Tile, cut, random_image, with_value

NAMES = ("torchvision", "torchvision.transforms", "torchvision.transforms.v2")
TAPS = 24  # of a table of 16 x 16 and a grid of 2 rows


class OnPillow:
    """What Lfm2VlImageProcessor calls of its base class."""

    def resize(self, images: torch.Tensor, size: Any, resample: int, **_: Any) -> torch.Tensor:
        resized = [PilBackend.resize(None, one.numpy(), size, resample) for one in images]
        return torch.from_numpy(np.stack(resized))

    def rescale_and_normalize(self, images: torch.Tensor, *settings: Any) -> torch.Tensor:
        _, factor, _, mean, deviation = settings
        values = PilBackend.rescale(None, images.numpy(), factor)
        flat = [
            PilBackend.normalize(None, one, mean, deviation)
            for one in values.reshape(-1, *values.shape[-3:])
        ]
        return torch.from_numpy(np.reshape(flat, values.shape))


@cache
def image_processor_module() -> ModuleType:
    modules = {name: ModuleType(name) for name in NAMES}
    vars(modules[NAMES[-1]])["functional"] = SimpleNamespace(InterpolationMode=int)
    with pytest.MonkeyPatch.context() as patched:
        for name, module in modules.items():
            patched.setitem(sys.modules, name, module)
        return import_module("transformers.models.lfm2_vl.image_processing_lfm2_vl")


def vision_settings(**changes: Any) -> dict[str, Any]:
    """wherry-vision.json with the defaults of transformers' image processor, and changes."""
    defaults = vars(image_processor_module().Lfm2VlImageProcessor)
    names = defaults["valid_kwargs"].__annotations__  # of all image processors, and its own
    processor = {name: defaults[name] for name in names if name in defaults} | changes
    return {
        "model_type": "lfm2_vl",
        "processor": processor | {"image_processor_type": "Lfm2VlImageProcessorFast"},
        "vision_config": {"patch_size": processor["encoder_patch_size"], "num_patches": 256},
        "position_taps": TAPS,
        "image_token": "<image>",
        "image_token_id": 396,
        "library": "vision.so",
    }


TINY = {"encoder_patch_size": 4, "tile_size": 128}
SETTINGS = {
    "published": vision_settings(),
    "small": vision_settings(**TINY),
    "no thumbnail": vision_settings(**TINY, use_thumbnail=False, max_tiles=4),
    "one tile": vision_settings(**TINY, do_image_splitting=False, resample=3),
}
SMALL = [(1, 1), (1, 200), (64, 64), (180, 181), (181, 181), (200, 200), (97, 311), (640, 150)]
CASES = [(name, size) for name in ("small", "no thumbnail", "one tile") for size in SMALL]
NIGHTLY = [
    pytest.param("published", size, marks=pytest.mark.nightly)
    for size in [(1, 1), (300, 1), (512, 512), (724, 725), (1024, 1024), (900, 1700), (4000, 3000)]
]


def reference(settings: dict[str, Any], pixels: np.ndarray) -> dict[str, Any]:
    """What transformers' class returns for an image."""
    processor = image_processor_module().Lfm2VlImageProcessor
    own = object.__new__(processor)
    names = {
        k: v
        for k, v in settings["processor"].items()
        if k not in ("size", "image_processor_type", "do_pad", "return_row_col_info")
    }
    image = torch.from_numpy(np.moveaxis(pixels, -1, 0).copy())
    with pytest.MonkeyPatch.context() as patched:
        for name in ("resize", "rescale_and_normalize"):
            patched.setattr(TorchvisionBackend, name, getattr(OnPillow, name))
        return processor._preprocess(
            own,
            [image],
            **names,
            do_pad=True,
            return_row_col_info=True,
            return_tensors="np",
            disable_grouping=None,
        )


def prompt_of(settings: dict[str, Any], result: dict[str, Any]) -> str:
    own = SimpleNamespace(
        image_token="<image>",
        image_start_token="<|image_start|>",
        image_end_token="<|image_end|>",
        image_thumbnail_token="<|img_thumbnail|>",
        image_processor=SimpleNamespace(**settings["processor"]),
    )
    for name in (
        "_build_image_tokens",
        "_compute_tokens_per_tile",
        "_compute_tokens_for_image",
        "_get_image_num_tokens",
    ):
        setattr(own, name, MethodType(getattr(Lfm2VlProcessor, name), own))
    return Lfm2VlProcessor.replace_image_token(own, result, 0, use_image_special_tokens=True)


def check_positions(tile: Tile, rows: int, columns: int, taps: int) -> None:
    """The tower's table of random numbers, resized to a tile's grid."""
    assert tile.positions.shape[1] == taps
    table = torch.from_numpy(np.random.default_rng(1).standard_normal((16, 16, 3), np.float32))
    expected = Siglip2VisionEmbeddings.resize_positional_embeddings(
        table, torch.tensor([[rows, columns]]), max_length=rows * columns
    )[0].numpy()
    grid = expected.reshape(rows, columns, 3).transpose(2, 0, 1)
    gathered = table.numpy().reshape(256, 3)[tile.positions]
    actual = (gathered * tile.position_weights[:, :, None]).sum(1)
    assert np.abs(actual - cut(grid, 1, 2)).max() < 2e-6


@pytest.mark.parametrize(("name", "size"), [*CASES, *NIGHTLY])
def test_an_image_equals_transformers(name, size):
    settings = SETTINGS[name]
    patch = settings["processor"]["encoder_patch_size"]
    pixels = random_image(size)
    prepared = ImageProcessor(settings).prepare(pixels)
    result = reference(settings, pixels)
    assert prepared.text == prompt_of(settings, result)
    shapes = result["spatial_shapes"].tolist()
    for tile, (rows, columns), values in zip(
        prepared.tiles, shapes, result["pixel_values"], strict=True
    ):
        grid = values[: rows * columns].reshape(rows, columns, patch, patch, 3)
        image = grid.transpose(4, 0, 2, 1, 3).reshape(3, rows * patch, columns * patch)
        assert np.array_equal(prepared.values(tile), cut(image, patch, 2))
        assert tile.rows == rows * columns // 4
        assert tile.coordinates is None and tile.grid == (0, 0)
        check_positions(tile, rows, columns, TAPS)


def test_the_record_of_a_compiled_model_is_read(tmp_path):
    """What compiler/towers.py writes, of a folder with transformers' files."""
    settings = SETTINGS["published"]
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings["processor"]))
    vision = {"num_patches": 256, "patch_size": 16, "vision_use_head": False}
    config = {"model_type": "lfm2_vl", "vision_config": vision}
    tower = tower_of(tmp_path, config, hidden_size=64)
    assert tower is not None
    record = json.loads(tower.record())
    assert record["position_taps"] == TAPS
    tiles = [
        ImageProcessor(one).prepare(random_image((900, 700))).tiles for one in (settings, record)
    ]
    assert [tile.digest for tile in tiles[0]] == [tile.digest for tile in tiles[1]]


@pytest.mark.parametrize(("tile", "taps"), [(32, TAPS), (24, 36), (16, 64), (8, 144)])
def test_tiles_smaller_than_the_table_need_more_rows_of_it(tile, taps):
    settings = vision_settings(encoder_patch_size=4, tile_size=tile)
    with pytest.raises(ValueError, match=f"position_taps: 1; accepted: an integer from {taps} to"):
        ImageProcessor(settings | {"position_taps": 1})
    prepared = ImageProcessor(settings | {"position_taps": 200}).prepare(random_image((300, 200)))
    for part in prepared.tiles[:-1]:
        check_positions(part, tile // 4, tile // 4, 200)


@pytest.mark.parametrize("name", ["small", "one tile"])
@pytest.mark.parametrize("size", [(1, 65_535), (65_535, 2)])
def test_a_thin_image_is_refused(name, size):
    """transformers fails on them, or on the mask of their patches."""
    with pytest.raises(ValueError, match="too thin") as error:
        ImageProcessor(SETTINGS[name]).prepare(random_image(size))
    assert "{} x {}".format(*size) in str(error.value)


def test_low_detail_has_no_tiles():
    pixels = random_image((640, 150))
    full, low = (ImageProcessor(SETTINGS["small"]).prepare(pixels, low) for low in (False, True))
    assert len(full.tiles) > 1
    assert [tile.digest for tile in low.tiles] == [full.tiles[-1].digest]  # the thumbnail


def test_special_tokens_may_be_off():
    settings = SETTINGS["small"] | {"use_image_special_tokens": False}
    prepared = ImageProcessor(settings).prepare(random_image((640, 150)))
    assert {part.text for part in prepared.prompt} == {""}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("processor.max_tiles", 1),  # fewer than min_tiles
        ("processor.max_tiles", 65),
        ("processor.tile_size", 130),
        ("processor.min_image_tokens", 257),
        ("processor.max_image_tokens", 1 << 20),
        ("processor.max_pixels_tolerance", None),
        ("processor.use_thumbnail", None),
        ("processor.do_center_crop", True),
        ("vision_config.num_patches", 255),
        ("vision_config.patch_size", 16),
        ("position_taps", TAPS - 1),
        ("position_taps", None),
    ],
)
def test_settings_that_cannot_be_used_are_named(path, value):
    with pytest.raises(ValueError, match=path):
        ImageProcessor(with_value(SETTINGS["small"], path, value))
