"""A conversation that continues when it exceeds the model's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine

Message = dict[str, str]
_SHARE = 4  # the response gets this fraction (1/4) of the context by default


class Conversation:
    """The messages of a chat. Old ones stay, but are no longer sent when the context is full.

    Args:
        engine: the engine, with chat template, tokenizer and context.
        system: a system message, which is always sent; None: none.
        turns: earlier messages, beginning with the user's.
    """

    def __init__(
        self, engine: MLCEngine, system: str | None, turns: Sequence[Message] = ()
    ) -> None:
        self._engine = engine
        self.system = system
        self.turns = list(turns)
        self._sent_from = 0  # index of the first message of `turns` that is sent

    @property
    def messages(self) -> list[Message]:
        """Return the messages to send."""
        opening = [{"role": "system", "content": self.system}] if self.system else []
        return opening + self.turns[self._sent_from :]

    def ask(self, text: str, max_tokens: int | None = None) -> int:
        """Add a user message; return how many older messages are no longer sent.

        Args:
            text: the message.
            max_tokens: tokens of the response; None: all that fit.

        Raises:
            RequestError: the message alone is too long, or the template rejects it.
        """
        before = self._sent_from
        self.turns.append({"role": "user", "content": text})
        room = max_tokens or max(1, self._engine.loaded.context // _SHARE)
        try:
            while not self._fits(room):
                self._sent_from += 2 if len(self.turns) - self._sent_from > 2 else 1
        except BaseException:
            self._sent_from = before
            self.turns.pop()
            raise
        return self._sent_from - before

    def withdraw(self) -> str | None:
        """Remove the last user message and its response; return the message."""
        while self.turns:
            message = self.turns.pop()
            if message["role"] == "user":
                self._sent_from = min(self._sent_from, len(self.turns))
                return message["content"]
        return None

    def answered(self, text: str) -> None:
        """Add a response of the model."""
        self.turns.append({"role": "assistant", "content": text})

    def _fits(self, room: int) -> bool:
        """Return whether a response of `room` tokens fits.

        Raises:
            RequestError: a single message leaves no room.
        """
        from wherry.runtime import RequestError
        from wherry.runtime.load.model import parse_chat

        alone = len(self.turns) - self._sent_from == 1
        fields: dict[str, Any] = {"messages": self.messages}
        fields["max_tokens"] = 1 if alone else room
        try:
            self._engine.loaded.chat(parse_chat(fields))
        except RequestError as e:
            if alone or e.code != "context_length_exceeded":
                raise
            return False
        return True
