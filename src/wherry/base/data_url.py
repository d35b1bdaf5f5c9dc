"""Writes files as data: URLs (RFC 2397)."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path

from wherry.errors import UsageError


def data_url(data: bytes, kind: str = "") -> str:
    """Return bytes as a URL; `kind` is their media type, "" for none."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def url_of_image(path: Path) -> str:
    """Return the URL of an image file, whose content is not looked at.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        data = path.expanduser().read_bytes()
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}. Give the file of an image, such as cat.jpg") from e
    return data_url(data, mimetypes.guess_type(path.name)[0] or "application/octet-stream")
