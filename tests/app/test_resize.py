"""app/image/resize.cc against Pillow: equal in every byte."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ..support.images import FILTERS, ImageProcessor

RESAMPLING = {name: Image.Resampling[name.upper()] for name in FILTERS}


def pillow(pixels: np.ndarray, width: int, height: int, name: str) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).resize((width, height), RESAMPLING[name]))


def random_pixels(random: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Noise, or the edges of black and white that overshoot beyond [0, 255]."""
    if random.random() < 0.5:
        return random.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return random.integers(0, 2, (height, width, 3), dtype=np.uint8) * np.uint8(255)


def differences(seeds: range) -> list[str]:
    """Resizes of random sizes, one for each seed, that differ from Pillow's."""
    processor = ImageProcessor()
    result = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        # Many small sides and a few of some hundred pixels.
        width, height, to_width, to_height = (int(2 ** random.uniform(0, 8.6)) for _ in range(4))
        name = FILTERS[seed % len(FILTERS)]
        pixels = random_pixels(random, width, height)
        if not np.array_equal(
            processor.resize(pixels, to_width, to_height, name),
            pillow(pixels, to_width, to_height, name),
        ):
            result.append(f"seed {seed}: {width}x{height} to {to_width}x{to_height}, {name}")
    return result


def test_random_sizes_equal_pillows():
    assert differences(range(100)) == []


@pytest.mark.nightly
def test_a_thousand_random_sizes_equal_pillows():
    assert differences(range(100, 1100)) == []


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(
    ("size", "to"),
    [
        ((1, 1), (7, 5)),  # one pixel
        ((5, 4), (5, 4)),  # the same size
        ((9, 4), (5, 4)),  # rows alone
        ((9, 4), (9, 11)),  # columns alone
        ((65_535, 1), (64, 1)),  # the longest side: windows of thousands of pixels
        ((3, 4000), (2, 2048)),
        ((800, 600), (512, 384)),
    ],
)
def test_special_sizes_equal_pillows(name, size, to):
    pixels = random_pixels(np.random.default_rng(sum(size)), *size)
    resized = ImageProcessor().resize(pixels, *to, name)
    assert np.array_equal(resized, pillow(pixels, *to, name))


def test_filters_differ():
    pixels = random_pixels(np.random.default_rng(3), 40, 30)
    results = {ImageProcessor().resize(pixels, 20, 15, name).tobytes() for name in FILTERS}
    assert len(results) == len(FILTERS)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((0, 5), "at least 1 x 1"),
        ((65_536, 1), "a side may have 65535"),
        ((40_000, 5_000), "an image may have 178956970"),
    ],
)
def test_sizes_beyond_the_bounds_are_refused(size, message):
    with pytest.raises(ValueError, match=message) as error:
        ImageProcessor().check_size(*size)
    assert "{} x {}".format(*size) in str(error.value)
