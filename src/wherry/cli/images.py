"""Image files of the command line as parts of a message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wherry.base.data_url import url_of_image

Content = str | list[dict[str, Any]]


def image_part(path: Path) -> dict[str, Any]:
    """Return an image file as a part of a message's content, in OpenAI's form.

    Raises:
        UsageError: the file cannot be read.
    """
    return {"type": "image_url", "image_url": {"url": url_of_image(path)}}


def content_of(text: str, images: Sequence[dict[str, Any]]) -> Content:
    """Return a message's content: images first, as small models read them best, then the text."""
    return [*images, {"type": "text", "text": text}] if images else text
