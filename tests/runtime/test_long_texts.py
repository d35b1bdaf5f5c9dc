"""Limits of how many things a request has are none of how long a text is."""

from __future__ import annotations

import pytest

from wherry.errors import WherryError
from wherry.runtime.host.request import checked

MAX_PARTS = 4096


def test_a_message_may_be_longer_than_messages_have_parts():
    text = "word " * MAX_PARTS
    checked("chat", {"messages": [{"role": "user", "content": text}]})


def test_parts_are_counted():
    parts = [{"type": "text", "text": "a"}] * (MAX_PARTS + 1)
    with pytest.raises(WherryError, match=f"{MAX_PARTS + 1} items; at most {MAX_PARTS}"):
        checked("chat", {"messages": [{"role": "user", "content": parts}]})
