"""Images as programs have them: paths, bytes, Pillow's images and arrays."""

from __future__ import annotations

import asyncio
import io
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wherry.errors import UsageError
from wherry.runtime import AsyncMLCEngine
from wherry.runtime.host.image_arguments import with_urls
from wherry.runtime.host.image_files import decoded

from .conftest import core_of
from .vision_model import file_of, make_seeing, picture, seeing_engines, text, url_of

PICTURE = picture(64, 40)


def asking(image) -> list[dict]:
    content = [{"type": "image_url", "image_url": {"url": image}}, text("What is it?")]
    return [{"role": "user", "content": content}]


def test_the_core_gets_the_same(tmp_path):
    file = tmp_path / "cat.png"
    file.write_bytes(file_of(PICTURE))
    pixels = np.asarray(PICTURE)
    forms = [url_of(file_of(PICTURE)), file, file.read_bytes(), bytearray(file.read_bytes())]
    forms += [PICTURE, Image.open(file), pixels, pixels[::-1][::-1]]
    with seeing_engines() as build:
        engine = build()
        for form in forms:
            engine.chat.completions.create(messages=asking(form))
        core = core_of(engine.loaded)
        assert core.spans[0] and all(spans == core.spans[0] for spans in core.spans)
        assert all(added[0] == core.added[0][0] for added in core.added)


def test_the_asynchronous_engine():
    model = make_seeing()
    try:
        engine = AsyncMLCEngine.of(model)
        asyncio.run(engine.chat.completions.create(messages=asking(PICTURE)))
        assert core_of(model).spans[-1]
    finally:
        model.close()


def pixels_of(image) -> np.ndarray:
    (message,) = with_urls(asking(image))
    url = message["content"][0]["image_url"]["url"]
    with decoded(b64decode(url.partition(",")[2])) as result:
        return np.asarray(result.image)


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "HSV", "YCbCr", "I;16"]
)
def test_modes_of_pillow(mode):
    image = PICTURE.convert("L").convert("I;16") if mode == "I;16" else PICTURE.convert(mode)
    # what Pillow makes of 16 bits are 8 bits in the lower half
    expected = np.zeros((40, 64, 3)) if mode == "I;16" else np.asarray(image.convert("RGB"))
    assert np.array_equal(pixels_of(image), expected)


def test_an_image_that_a_camera_has_turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = Image.open(io.BytesIO(file_of(PICTURE, "PNG", exif=exif)))
    assert np.array_equal(pixels_of(turned), np.rot90(np.asarray(PICTURE), -1))


@pytest.mark.parametrize("channels", [None, 3, 4])
def test_arrays(channels):
    shape = (5, 7) if channels is None else (5, 7, channels)
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    if channels == 4:
        array[..., 3] = 255
    expected = np.stack([array] * 3, -1) if channels is None else array[..., :3]
    assert np.array_equal(pixels_of(array), expected)


WRONG = [
    (np.zeros((4, 4, 3), np.float32), r"float32 \[4, 4, 3\]; accepted is uint8"),
    (np.zeros((3, 4, 4), np.uint8)[..., :2], r"uint8 \[3, 4, 2\]"),
    (np.zeros((0, 4), np.uint8), r"\[0, 4\]"),
    (Path("none.png"), "none.png: No such file"),
    (3, "is of type int; accepted are a data: URL"),
]


@pytest.mark.parametrize(("image", "reason"), WRONG)
def test_what_is_no_image(image, reason):
    with pytest.raises(UsageError, match=reason):
        with_urls(asking(image))


def test_other_messages_stay_as_they_are():
    for messages in (
        None,
        "a",
        3,
        [1],
        [{"role": "user", "content": "a"}],
        asking("data:;base64,"),
    ):
        assert with_urls(messages) == messages
