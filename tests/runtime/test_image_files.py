"""Image files of clients, decoded: what is turned, composited, converted and refused."""

from __future__ import annotations

import io
import random
import struct
import threading
import time
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from wherry.runtime.host import image_files
from wherry.runtime.host.image_files import ImageError, decoded

from .vision_model import file_of, picture


def pixels(file: bytes) -> np.ndarray:
    """[height, width, 3]"""
    with decoded(file) as image:
        width, height = image.size
        return np.frombuffer(b"".join(image.strips()), np.uint8).reshape(height, width, 3)


def test_a_picture_larger_than_a_strip():
    image = picture(1000, 1000)
    assert np.array_equal(pixels(file_of(image)), np.asarray(image))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns(orientation):
    image = picture(6, 4)
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = ImageOps.exif_transpose(Image.open(io.BytesIO(file_of(image, exif=exif))))
    assert turned.size == ((6, 4) if orientation < 5 else (4, 6))
    assert np.array_equal(pixels(file_of(image, exif=exif)), np.asarray(turned))


def test_transparent_parts_are_white():
    """Also colours that a transparent part hides, in each form that formats have."""
    rgba = Image.new("RGBA", (3, 1))
    rgba.putdata([(255, 0, 0, 0), (0, 0, 255, 128), (9, 8, 7, 255)])
    for file in (file_of(rgba), file_of(rgba, "WEBP", lossless=True, exact=True)):
        got = pixels(file)[0].tolist()
        assert got == [[255, 255, 255], [127, 127, 255], [9, 8, 7]]
    grey = Image.new("LA", (2, 1))
    grey.putdata([(0, 0), (10, 255)])
    assert pixels(file_of(grey))[0].tolist() == [[255] * 3, [10] * 3]
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 255, 0])
    palette.putdata([0, 1])
    for kind in ("PNG", "GIF"):
        file = file_of(palette, kind, transparency=0)
        assert pixels(file)[0].tolist() == [[255] * 3, [0, 255, 0]]
    keyed = file_of(Image.new("RGB", (1, 1), (1, 2, 3)), transparency=(1, 2, 3))
    assert pixels(keyed)[0].tolist() == [[255] * 3]


def test_cmyk():
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    red = pixels(file_of(image, "JPEG", quality=100))[4, 4].tolist()
    assert np.abs(np.subtract(red, [255, 0, 0])).max() <= 3


def test_sixteen_bits():
    grey = Image.fromarray(np.array([[0, 255, 256, 0x8000, 0xFFFF]], np.uint16))
    assert grey.mode.startswith("I")
    assert pixels(file_of(grey))[0, :, 0].tolist() == [0, 0, 1, 0x80, 0xFF]
    rgb = _png(2, 1, 16, 2, struct.pack(">6H", 0x1234, 0, 0xFFFF, 0x00FF, 0x8000, 0x7FFF))
    assert pixels(rgb)[0].tolist() == [[0x12, 0, 0xFF], [0, 0x80, 0x7F]]


def test_one_bit_and_palettes():
    assert pixels(file_of(Image.new("1", (2, 2), 1)))[0, 0].tolist() == [255] * 3
    image = picture(8, 8).quantize(16)
    assert np.array_equal(pixels(file_of(image)), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_counts(kind):
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    file = file_of(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert pixels(file)[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "ICO", "PPM"])
def test_other_formats_are_refused(kind):
    with pytest.raises(ImageError, match="none of JPEG, PNG, WebP and GIF"):
        pixels(file_of(picture(16, 16), kind))


def _png(width: int, height: int, bits: int, colour: int, rows: bytes) -> bytes:
    """A PNG whose header says what it likes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    line = len(rows) // height if height <= len(rows) else len(rows)
    lines = b"".join(b"\0" + rows[i : i + line] for i in range(0, len(rows), line or 1))
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("side", [9460, 14000, 60000, 2**31 - 1])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bombs_are_refused_before_they_are_decoded(side, monkeypatch):
    monkeypatch.setattr(image_files, "_rgb", lambda image: pytest.fail("it is decoded"))
    with pytest.raises(ImageError):
        pixels(_png(side, side, 8, 2, b"\0" * 30))


def test_a_bomb_of_text_in_a_png():
    file = _png(1, 1, 8, 2, b"\1\2\3")
    text = b"k\0\0" + zlib.compress(bytes(8 << 20))
    chunk = b"zTXt" + text
    bomb = struct.pack(">I", len(text)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    start = time.monotonic()
    with pytest.raises(ImageError, match=r"(?i)decompress"):
        pixels(file[:33] + bomb + file[33:])
    assert time.monotonic() - start < 10


def test_large_images_are_decoded_one_at_a_time(monkeypatch):
    monkeypatch.setattr(image_files, "_LARGE", 10)
    inside, most = [], []

    def slow(image):
        inside.append(image)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        return image.convert("RGB")

    monkeypatch.setattr(image_files, "_rgb", slow)
    file = file_of(picture(8, 8))
    threads = [threading.Thread(target=pixels, args=(file,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("GIF", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value) or "plain",
)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_mutants_are_read_or_refused(kind, options):
    """200 damaged files of each format: another picture, or an ImageError; soon, in any case."""
    file, rng = file_of(picture(48, 32), kind, **options), random.Random(kind)
    read = 0
    for _ in range(200):
        mutant = bytearray(file)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(mutant))
            match rng.randrange(4):
                case 0:
                    mutant[at] = rng.randrange(256)
                case 1:
                    del mutant[at : at + rng.randint(1, 40)]
                case 2:
                    mutant[at:at] = rng.randbytes(rng.randint(1, 8))
                case _:
                    mutant[at : at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff"])
            if not mutant:
                break
        start = time.monotonic()
        try:
            with decoded(bytes(mutant)) as image:
                width, height = image.size
                assert sum(map(len, image.strips())) == 3 * width * height
            read += 1
        except ImageError as e:
            assert str(e) and len(str(e)) <= 300
        assert time.monotonic() - start < 10
    assert read < 200


def test_a_machine_without_room_is_no_fault_of_the_file(monkeypatch):
    def full(self, *_args, **_options):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", full)
    with pytest.raises(MemoryError), decoded(file_of(picture(4, 4))):
        pass
