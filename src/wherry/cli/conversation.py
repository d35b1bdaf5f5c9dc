"""The messages of a chat at the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .images import Content

Message = dict[str, Any]


class Conversation:
    """The messages of a chat; all of them stay, also those that the context has no room for.

    Args:
        system: a system message, which is always sent; None: none.
        turns: earlier messages, beginning with the user's.
    """

    def __init__(self, system: str | None, turns: Sequence[Message] = ()) -> None:
        self.system = system
        self.turns = list(turns)
        self.dropped = 0  # the number of messages that the last response left out

    @property
    def messages(self) -> list[Message]:
        """Return the messages to send."""
        opening: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        return opening + self.turns

    def ask(self, content: Content) -> None:
        """Add a user message."""
        self.turns.append({"role": "user", "content": content})

    def answered(self, text: str) -> None:
        """Add a response of the model."""
        self.turns.append({"role": "assistant", "content": text})

    def withdraw(self) -> Content | None:
        """Remove the last user message and its response; return the message's content."""
        while self.turns:
            message = self.turns.pop()
            if message["role"] == "user":
                content: Content = message["content"]
                return content
        return None
