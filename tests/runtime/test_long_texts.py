"""Limits of how many things a request has are none of how long a text is."""

from __future__ import annotations

import pytest

from wherry.errors import WherryError
from wherry.runtime.load.model import parse_chat
from wherry.runtime.shapes.kinds import MAX_PARTS


def test_a_message_may_be_longer_than_messages_have_parts():
    text = "word " * MAX_PARTS
    (message,) = parse_chat({"messages": [{"role": "user", "content": text}]}).messages
    assert message.content == text


def test_parts_are_counted():
    parts = [{"type": "text", "text": "a"}] * (MAX_PARTS + 1)
    with pytest.raises(WherryError, match=f"{MAX_PARTS + 1} parts; at most {MAX_PARTS}"):
        parse_chat({"messages": [{"role": "user", "content": parts}]})
