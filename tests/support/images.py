"""Images as towers take them: app/image by libwherry_readers, which only builds for tests have."""

from __future__ import annotations

import copy
import ctypes
import json
import weakref
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint8, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..app.programs import BUILD

FILTERS = ("box", "bilinear", "bicubic", "lanczos")  # in the order of app/image/resize.h


@dataclass
class Tile:
    patches: np.ndarray  # [patch_count, 3 * patch * patch] uint8
    positions: np.ndarray | None  # [patch_count, taps] int32
    position_weights: np.ndarray | None  # [patch_count, taps] float32
    coordinates: np.ndarray | None  # [patch_count, 2] int32
    digest: bytes
    rows: int
    grid: tuple[int, int]


@dataclass
class Part:
    """A part of a prompt: a text, or rows of a tile."""

    text: str
    tile: int
    first_row: int
    rows: int


@dataclass
class PreparedImage:
    placeholder: str
    soft_token: str
    prompt: list[Part]
    tiles: list[Tile]
    levels: np.ndarray  # [3, 256] float32

    @property
    def text(self) -> str:
        """The prompt with a soft token for each row."""
        return "".join(part.text + self.soft_token * part.rows for part in self.prompt)

    def values(self, tile: Tile) -> np.ndarray:
        """The values of a tile's patches [patch_count, 3 * patch * patch] float32."""
        channel = np.repeat(np.arange(3), tile.patches.shape[1] // 3)
        return self.levels[channel, tile.patches]


def random_image(size: tuple[int, int], seed: int = 0) -> np.ndarray:
    """size: width, height -> [h, w, 3] uint8"""
    width, height = size
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def with_value(settings: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Settings with another value at a path such as "processor.size"."""
    result = copy.deepcopy(settings)
    *folders, last = path.split(".")
    target = result
    for folder in folders:
        target = target[folder]
    target[last] = value
    return result


def cut(image: np.ndarray, patch: int, block: int = 1) -> np.ndarray:
    """[3, h, w] -> [patches, 3 * patch * patch], block by block, row by row in a block and above"""
    rows, columns = (pixels // patch // block for pixels in image.shape[1:])
    complete = image[:, : rows * block * patch, : columns * block * patch]
    grid = complete.reshape(3, rows, block, patch, columns, block, patch)
    return grid.transpose(1, 4, 2, 5, 0, 3, 6).reshape(rows * columns * block**2, -1)


class ImageProcessor:
    """app/image with settings (the content of wherry-vision.json); without, for resizes alone."""

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        self._api = _library()
        text = "" if settings is None else json.dumps(settings)
        self._handle = self._api.wherry_images_open(text.encode())
        if not self._handle:
            raise ValueError(self._api.wherry_reader_error().decode())
        weakref.finalize(self, self._api.wherry_images_close, self._handle)

    def resize(self, pixels: np.ndarray, width: int, height: int, name: str) -> np.ndarray:
        """pixels [h, w, 3] uint8 -> [height, width, 3]"""
        to = (c_int * 3)(width, height, FILTERS.index(name))
        address = self._checked(
            self._api.wherry_images_resize(self._handle, *_arguments(pixels), to)
        )
        return _array(address, c_uint8, (height, width, 3))

    def check_size(self, width: int, height: int) -> None:
        """Raises ValueError for a size without pixels or beyond the bounds."""
        to = (c_int * 3)(1, 1, 0)  # the size is checked before the pixels are read
        self._checked(self._api.wherry_images_resize(self._handle, None, width, height, to))

    def prepare(self, pixels: np.ndarray, low: bool = False) -> PreparedImage:
        """low: with the least detail"""
        answer = self._api.wherry_images_prepare(self._handle, *_arguments(pixels), low)
        result = json.loads(self._checked(answer))
        levels = _array(self._api.wherry_images_levels(self._handle), c_float, (3, 256))
        tiles = [self._tile(i, tile) for i, tile in enumerate(result["tiles"])]
        prompt = [Part(*part) for part in result["prompt"]]
        return PreparedImage(result["placeholder"], result["soft_token"], prompt, tiles, levels)

    def _tile(self, index: int, tile: dict[str, Any]) -> Tile:
        def read(name: str, kind: type[Any], *shape: int) -> Any:
            if not tile.get(name, True):
                return None
            address = getattr(self._api, f"wherry_images_{name}")(self._handle, index)
            return _array(address, kind, shape)

        count, taps = tile["patches"], tile["taps"]
        return Tile(
            read("patches", c_uint8, count, tile["elements"]),
            read("positions", c_int32, count, taps),
            read("position_weights", c_float, count, taps),
            read("coordinates", c_int32, count, 2),
            read("digest", c_uint8, 32).tobytes(),
            tile["rows"],
            (tile["grid_rows"], tile["grid_columns"]),
        )

    def _checked(self, answer: Any) -> Any:
        if answer is None:
            raise ValueError(self._api.wherry_reader_error().decode())
        return answer


def _arguments(pixels: np.ndarray) -> tuple[Any, int, int]:
    height, width, _ = pixels.shape
    return np.ascontiguousarray(pixels, np.uint8).ctypes.data_as(c_void_p), width, height


def _array(address: int, kind: type[Any], shape: tuple[int, ...]) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, POINTER(kind)), shape).copy()


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(BUILD / "libwherry_readers.so"))
    image = (c_void_p, c_void_p, c_int, c_int)
    for name, result, arguments in (
        ("reader_error", c_char_p, ()),
        ("images_open", c_void_p, (c_char_p,)),
        ("images_close", None, (c_void_p,)),
        ("images_resize", c_void_p, (*image, POINTER(c_int))),
        ("images_prepare", c_char_p, (*image, c_int)),
        ("images_levels", c_void_p, (c_void_p,)),
        ("images_patches", c_void_p, (c_void_p, c_size_t)),
        ("images_positions", c_void_p, (c_void_p, c_size_t)),
        ("images_position_weights", c_void_p, (c_void_p, c_size_t)),
        ("images_coordinates", c_void_p, (c_void_p, c_size_t)),
        ("images_digest", c_void_p, (c_void_p, c_size_t)),
    ):
        function = getattr(library, f"wherry_{name}")
        function.restype, function.argtypes = result, arguments
    return library
