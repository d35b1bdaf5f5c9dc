"""A conversation that continues when it exceeds the model's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine

Message = dict[str, str]
_SHARE = 4  # the answer gets this part of the context by default


class Conversation:
    """The messages so far. Old ones are kept, but no longer sent when the context is full.

    Args:
        engine: has the template, the tokenizer and the context.
        system: a system message, which is always sent; None: none.
        turns: earlier messages, the person's first.
    """

    def __init__(
        self, engine: MLCEngine, system: str | None, turns: Sequence[Message] = ()
    ) -> None:
        self._engine = engine
        self.system = system
        self.turns = list(turns)
        self._sent_from = 0  # index of the first sent message of `turns`

    @property
    def messages(self) -> list[Message]:
        """The messages to send."""
        opening = [{"role": "system", "content": self.system}] if self.system else []
        return opening + self.turns[self._sent_from :]

    def ask(self, text: str, max_tokens: int | None = None) -> int:
        """Add a message of the person; return how many older messages are no longer sent.

        Args:
            text: the message.
            max_tokens: of the answer; None: as many as fit.

        Raises:
            RequestError: the message alone is too long, or the template refuses it.
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
        """Remove the last question and its answer, and return the question."""
        while self.turns:
            message = self.turns.pop()
            if message["role"] == "user":
                self._sent_from = min(self._sent_from, len(self.turns))
                return message["content"]
        return None

    def answered(self, text: str) -> None:
        """Add an answer of the model."""
        self.turns.append({"role": "assistant", "content": text})

    def _fits(self, room: int) -> bool:
        """Whether there is room for an answer; an error if a single message leaves none."""
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
