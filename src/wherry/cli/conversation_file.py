"""Reads and writes a conversation as JSON, which other programs can use.

    {"wherry_conversation": 1, "model": "demo", "fields": {"temperature": 0.2},
     "messages": [{"role": "system", "content": "..."}, {"role": "user", "content": "..."}, ...]}

`messages` are OpenAI's, and images are in them; `fields` are those of a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.base.json_file import read_object
from wherry.base.temporary import write_atomically
from wherry.errors import UsageError

from .conversation import Message

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Saved:
    """The content of a conversation file."""

    model: str  # the last model of the conversation; another one may continue it
    system: str | None
    turns: list[Message]
    fields: dict[str, Any]


def write(path: Path, saved: Saved) -> None:
    """Write a conversation to a file, replacing an older one.

    Raises:
        UsageError: the file cannot be written.
    """
    opening = [{"role": "system", "content": saved.system}] if saved.system else []
    content = {
        "wherry_conversation": _VERSION,
        "model": saved.model,
        "fields": saved.fields,
        "messages": opening + saved.turns,
    }
    try:
        write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except OSError as e:
        raise UsageError(f"{path} cannot be written: {e}") from e


def read(path: Path) -> Saved:
    """Read a conversation from a file.

    Raises:
        UsageError: the file cannot be read, or contains no conversation.
    """
    try:
        raw = read_object(path)
        version = raw.get("wherry_conversation")
        if version != _VERSION:
            raise ValueError(f"wherry_conversation is {version!r}, {_VERSION} is known")
        system, turns = _turns(raw.get("messages"))
        fields = raw.get("fields", {})
        if not isinstance(fields, Mapping):
            raise ValueError("fields is not an object")
    except (OSError, ValueError) as e:
        raise UsageError(
            f"{path} is not a conversation ({e}). Write one: wherry chat MODEL --save {path}"
        ) from e
    return Saved(str(raw.get("model", "")), system, turns, dict(fields))


def _has_content(message: dict[str, Any]) -> bool:
    """Tell whether a content is a text, or a list of parts (which requests check) of the user."""
    content = message["content"]
    parts = content if message["role"] == "user" and isinstance(content, list) else []
    return isinstance(content, str) or (bool(parts) and all(isinstance(p, dict) for p in parts))


def _turns(messages: Any) -> tuple[str | None, list[Message]]:
    """Split messages into the system message and alternating turns."""
    if not isinstance(messages, list):
        raise ValueError("messages is not an array")
    for i, message in enumerate(messages):
        known = isinstance(message, dict) and set(message) == {"role", "content"}
        if not known or not _has_content(message):
            raise ValueError(f'message {i} is not {{"role": "...", "content": "..."}}')
    has_system = bool(messages) and messages[0]["role"] == "system"
    turns = messages[1:] if has_system else messages
    for i, message in enumerate(turns):
        if message["role"] != ("user", "assistant")[i % 2]:
            raise ValueError(f"message {i + has_system} is of {message['role']!r}, out of turn")
    if len(turns) % 2:
        raise ValueError("the last message is not the model's")
    return (messages[0]["content"] if has_system else None), turns
