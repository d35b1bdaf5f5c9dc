"""Image files of the command line as parts of a message."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wherry.errors import UsageError

Content = str | list[dict[str, Any]]


def image_part(path: Path) -> dict[str, Any]:
    """Return an image file as a part of a message's content, in OpenAI's form.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        data = path.expanduser().read_bytes()
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}. Give the file of an image, such as cat.jpg") from e
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def content_of(text: str, images: Sequence[dict[str, Any]]) -> Content:
    """Return a message's content: images first, as small models read them best, then the text."""
    return [*images, {"type": "text", "text": text}] if images else text
