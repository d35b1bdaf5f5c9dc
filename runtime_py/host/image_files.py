"""Decodes the image files of requests with Pillow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from wherry.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
# The number above which Pillow warns of a bomb. The pixels alone take 256 MiB, and Pillow has them
# two or three times.
MAX_PIXELS = 89_478_485
_LARGE = 2**24  # pixels; larger images are decoded one at a time, which bounds memory
_STRIP = 2**20  # bytes
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # modes of 16 bits
_one_large = threading.Lock()


class ImageError(UsageError):
    """An image file cannot be read, or is too large; the text is the reason."""


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """The pixels of an image file, upright and opaque, of 8 bits and RGB."""

    image: Image

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height."""
        return self.image.size

    def strips(self) -> Iterator[bytes]:
        """Yield the pixels, uint8 [rows, width, 3] each, from the top."""
        width, height = self.size
        rows = max(1, _STRIP // (3 * width))
        for top in range(0, height, rows):
            yield self.image.crop((0, top, width, min(top + rows, height))).tobytes()


@contextmanager
def decoded(data: bytes) -> Iterator[DecodedImage]:
    """Decode a JPEG, PNG, WebP or GIF, whose first frame counts.

    It is turned as its EXIF data say; transparent parts show white, as processors of models have
    it; of 16 bits the upper eight count, and other colours become RGB without a profile.

    Raises:
        ImageError: the file cannot be read, or has more than MAX_PIXELS pixels.
        MemoryError: this machine has no room for the pixels.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(BytesIO(data), formats=FORMATS)
        width, height = image.size
    except UnidentifiedImageError as e:
        raise ImageError("it is none of JPEG, PNG, WebP and GIF, or damaged") from e
    except MemoryError:  # no fault of the file
        raise
    except Exception as e:  # decoders of damaged files raise anything
        raise ImageError(_reason(e)) from e
    if width * height > MAX_PIXELS:
        raise ImageError(f"it has {width} x {height} pixels; at most {MAX_PIXELS:,} are read")
    with _one_large if width * height > _LARGE else nullcontext():
        try:
            pixels = DecodedImage(_rgb(image))
        except MemoryError:
            raise
        except Exception as e:  # as above
            raise ImageError(_reason(e)) from e
        yield pixels


def _rgb(image: Image) -> Image:
    from PIL import Image as module
    from PIL import ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode in _DEEP:
        return image.point(lambda level: level * (1 / 256)).convert("L").convert("RGB")
    if image.has_transparency_data:
        over = image.convert("RGBA")
        white = module.new("RGBA", over.size, (255, 255, 255, 255))
        return module.alpha_composite(white, over).convert("RGB")
    return image.convert("RGB")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")[:300]
