"""app/decode: the pixels of image files are those that Python's server has of them."""

from __future__ import annotations

import random
import struct
import time
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from wherry.runtime.host.image_files import decoded

from ..runtime.vision_model import file_of, picture
from ..support.decode import decode

SIZES = [(1, 1), (2, 3), (8, 8), (17, 31), (33, 15), (64, 64), (101, 37), (300, 1), (1, 300)]
OTHERS = "it is none of JPEG, PNG and GIF, or damaged"


def of_python(file: bytes) -> np.ndarray:
    with decoded(file) as image:
        width, height = image.size
        return np.frombuffer(b"".join(image.strips()), np.uint8).reshape(height, width, 3)


def photograph(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture with smooth parts and edges, as JPEG is meant for."""
    rough = picture(max(2, width // 8), max(2, height // 8), seed).resize((width, height), 3)
    return Image.blend(rough, rough.filter(ImageFilter.FIND_EDGES), 0.3)


def with_alpha(image: Image.Image, seed: int = 9) -> Image.Image:
    alpha = photograph(*image.size, seed=seed).convert("L")
    alpha.paste(0, (0, 0, *(max(1, n // 2) for n in image.size)))
    image = image.copy()
    image.putalpha(alpha)
    return image


def same(file: bytes) -> None:
    expected, got = of_python(file), decode(file)
    assert got.shape == expected.shape
    assert np.array_equal(got, expected), np.abs(got.astype(int) - expected).max()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_jpeg(size):
    """Of up to four columns libjpeg-turbo does not interpolate chroma, and wuffs does."""
    image = photograph(*size)
    for subsampling in (0, 1, 2) if size[0] > 4 else (0,):
        for quality in (50, 90):
            options = {"quality": quality, "subsampling": subsampling}
            same(file_of(image, "JPEG", **options))
            same(file_of(image, "JPEG", **options, progressive=True))
        same(file_of(picture(*size), "JPEG", quality=95, subsampling=subsampling))
        same(file_of(image, "JPEG", subsampling=subsampling, restart_marker_blocks=1))
    same(file_of(image.convert("L"), "JPEG"))
    same(file_of(image.convert("CMYK"), "JPEG"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_png_and_gif(size):
    image = photograph(*size)
    for mode in ("RGB", "L", "1", "P"):
        same(file_of(image.convert(mode)))
    clear = with_alpha(image)
    same(file_of(clear))
    same(file_of(clear.convert("LA")))
    levels = np.random.default_rng(1).integers(0, 2**16, size[::-1], dtype=np.uint16)
    same(file_of(Image.fromarray(levels)))
    for key in ("RGB", "L"):
        keyed = image.convert(key)
        same(file_of(keyed, transparency=keyed.getpixel((0, 0))))
    palette = image.quantize(16)
    same(file_of(palette, transparency=3))
    same(file_of(palette, transparency=bytes(range(0, 256, 16))))
    for kind in (palette, palette.convert("L"), image):
        same(file_of(kind, "GIF"))
    same(file_of(palette, "GIF", transparency=3))
    same(file_of(palette, "GIF", interlace=1))
    same(file_of(image, "GIF", save_all=True, append_images=[photograph(*size, seed=5)]))


def test_png_of_sixteen_bits_and_interlaced():
    """Forms that Pillow does not write."""
    values = np.random.default_rng(2).integers(0, 2**16, (5, 7, 4), dtype=np.uint16)
    for colour, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
        rows = b"".join(b"\0" + row[:, :channels].astype(">u2").tobytes() for row in values)
        same(_png(7, 5, 16, colour, rows))
    passes = b""
    levels = np.random.default_rng(3).integers(0, 256, (11, 13), dtype=np.uint8)
    for y, x, down, across in (
        (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4),
        (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1),
    ):  # fmt: skip
        passes += b"".join(b"\0" + row.tobytes() for row in levels[y::down, x::across])
    file = _png(13, 11, 8, 0, passes, interlaced=1)
    assert np.array_equal(of_python(file)[:, :, 0], levels)
    same(file)


@pytest.mark.parametrize("orientation", [*range(10), 99])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_exif_turns(orientation, kind, endian):
    exif = Image.Exif()
    exif.endian = endian
    exif[0x010F] = "before it"
    exif[0x0112] = orientation
    same(file_of(photograph(40, 24), kind, exif=exif))


def _png(width, height, bits, colour, rows, interlaced=0) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"", OTHERS),
        (b"GIF", OTHERS),
        (b"BM" + bytes(60), OTHERS),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", OTHERS),
        (b"RIFF", OTHERS),
        (file_of(picture(4, 4), "WEBP"), "it is a WebP; this program reads JPEG, PNG and GIF"),
        (_png(30_000, 30_000, 1, 0, b""), "it has 30000 x 30000 pixels; at most 89,478,485"),
        (_png(2**20, 2, 1, 0, b""), "65,535|65535"),
        (_png(0, 5, 8, 0, b""), "png: bad header"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(file, reason):
    with pytest.raises(ValueError, match=reason):
        decode(file)


def _files() -> dict[str, bytes]:
    image, kinds = photograph(40, 30), Image.Exif()
    kinds[0x0112] = 6
    options: dict[str, tuple[Any, dict[str, Any]]] = {
        "jpeg": (image, {"kind": "JPEG", "exif": kinds}),
        "progressive": (image, {"kind": "JPEG", "progressive": True}),
        "png": (with_alpha(image), {"exif": kinds}),
        "palette": (image.quantize(7), {"transparency": 2}),
        "gif": (image, {"kind": "GIF", "interlace": 1}),
    }
    return {name: file_of(one, **given) for name, (one, given) in options.items()}


@pytest.mark.parametrize("name", list(_files()))
def test_a_file_that_ends_early(name):
    file = _files()[name]
    for length in range(0, len(file) - 16, max(1, len(file) // 60)):
        with pytest.raises(ValueError):
            decode(file[:length])


@pytest.mark.parametrize(
    "count", [40, pytest.param(500, marks=pytest.mark.nightly)], ids=["few", "many"]
)
@pytest.mark.parametrize("name", list(_files()))
def test_damaged_files(name, count):
    """Each is read or refused, in the time that its size takes."""
    file, rng = _files()[name], random.Random(name)
    slowest = 0.0
    for _ in range(count):
        mutant = bytearray(file)
        for _ in range(rng.choice((1, 1, 2, 8))):
            match rng.randrange(4):
                case 0:
                    mutant[rng.randrange(len(mutant))] = rng.randrange(256)
                case 1:
                    at = rng.randrange(len(mutant))
                    del mutant[at : at + rng.randrange(1, 40)]
                case 2:
                    at = rng.randrange(len(mutant))
                    mutant[at:at] = rng.randbytes(rng.randrange(1, 40))
                case _:
                    at = rng.randrange(len(mutant))
                    mutant[at : at + 4] = b"\xff" * 4
        begun = time.monotonic()
        try:
            assert decode(bytes(mutant)).size
        except ValueError:
            pass
        slowest = max(slowest, time.monotonic() - begun)
    assert slowest < 10
