"""The contents of chat messages that other protocols' contents are translated to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ChatPart = dict[str, Any]


def text_part(text: str) -> ChatPart:
    """Return a part with a text."""
    return {"type": "text", "text": text}


def image_part(url: str, origin: str, detail: str | None = None) -> ChatPart:
    """Return a part with an image.

    Args:
        url: its data: URL; C++ refuses others.
        origin: the path of the image in the client's request, for errors.
        detail: how closely the image is to be read (OpenAI's field).
    """
    image = {"url": url, "origin": origin} | ({"detail": detail} if detail else {})
    return {"type": "image_url", "image_url": image}


def base64_part(data: str, origin: str) -> ChatPart:
    """Return a part with an image in base64; the bytes tell its format."""
    return image_part(f"data:;base64,{data}", origin)


def content_of(parts: Sequence[ChatPart]) -> str | list[ChatPart]:
    """Return the content of a message: a text, or the parts if there are images among them."""
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return list(parts)
