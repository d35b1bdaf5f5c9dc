"""Images as programs have them, in the messages of an engine's arguments."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wherry.base.data_url import data_url, url_of_image
from wherry.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

_WRITTEN = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # modes that PNG has


def with_urls(messages: Any) -> Any:
    """Return the messages of a chat, in which the URLs of images are texts.

    A part {"type": "image_url", "image_url": {"url": image}} may have as image a path (pathlib),
    the bytes of a file, an image of Pillow, or an array uint8 [height, width], [height, width, 3]
    or [height, width, 4].

    Raises:
        UsageError: a file cannot be read, or an array has another form.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return messages
    return [_message(message) for message in messages]


def _message(message: Any) -> Any:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list | tuple):
        return message
    return {**message, "content": [_part(part) for part in content]}


def _part(part: Any) -> Any:
    image = part.get("image_url") if isinstance(part, Mapping) else None
    if not isinstance(image, Mapping) or isinstance(image.get("url"), str | None):
        return part
    return {**part, "image_url": {**image, "url": _url(image["url"])}}


def _url(image: Any) -> str:
    if isinstance(image, Path):
        return url_of_image(image)
    if isinstance(image, bytes | bytearray | memoryview):
        return data_url(bytes(image))
    if isinstance(image, np.ndarray):
        return _png(_of_array(image))
    if hasattr(image, "mode") and hasattr(image, "save"):
        return _png(image)
    raise UsageError(
        f"The url of an image is of type {type(image).__name__}; accepted are a data: URL, a "
        "pathlib.Path, the bytes of a file, an image of Pillow and a NumPy array"
    )


def _of_array(pixels: np.ndarray[Any, Any]) -> Image:
    from PIL import Image

    is_color = pixels.ndim == 3 and pixels.shape[2] in (3, 4)
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or is_color) or pixels.size == 0:
        raise UsageError(
            f"An image is an array {pixels.dtype} {list(pixels.shape)}; accepted is uint8 "
            "[height, width], [height, width, 3] or [height, width, 4]"
        )
    return Image.fromarray(np.ascontiguousarray(pixels))


def _png(image: Image) -> str:
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode not in _WRITTEN:
        upright = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    file = io.BytesIO()
    upright.save(file, "PNG", compress_level=1)  # of the pixels; speed counts, not size
    return data_url(file.getvalue(), "image/png")
