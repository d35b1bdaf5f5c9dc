"""A conversation that goes on when it has become longer than the model's context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine

Message = dict[str, str]
_SHARE = 4  # a quarter of the context is kept for the answer, if nothing else is asked for


class Conversation:
    """Messages so far, of which the oldest turns go when room is needed.

    Args:
        engine: knows the template, the tokens of a text, and the context.
        system: a system message, which stays; None: none.
        max_tokens: of an answer; None: as many as fit.
    """

    def __init__(self, engine: MLCEngine, system: str | None, max_tokens: int | None) -> None:
        self._engine = engine
        self._opening = [{"role": "system", "content": system}] if system else []
        self._turns: list[Message] = []
        self._before: list[Message] = []
        context = engine.loaded.context
        self._room = max_tokens or max(1, context // _SHARE)

    @property
    def messages(self) -> list[Message]:
        """What the model is asked with."""
        return self._opening + self._turns

    def ask(self, text: str) -> int:
        """Add what the person says; the number of older messages that had to go for it.

        Raises:
            RequestError: the text alone is too long, or the template refuses it.
        """
        self._before = list(self._turns)
        self._turns.append({"role": "user", "content": text})
        while not self._fits():
            del self._turns[: 2 if len(self._turns) > 2 else 1]
        return len(self._before) + 1 - len(self._turns)

    def withdraw(self) -> None:
        """Undo the last `ask`."""
        self._turns = self._before

    def answered(self, text: str) -> None:
        """Add what the model said."""
        self._turns.append({"role": "assistant", "content": text})

    def _fits(self) -> bool:
        """Whether an answer has room; an error if a single message has none."""
        from wherry.runtime import RequestError
        from wherry.runtime.load.model import parse_chat

        alone = len(self._turns) == 1
        fields: dict[str, Any] = {"messages": self.messages}
        fields["max_tokens"] = 1 if alone else self._room
        try:
            self._engine.loaded.chat(parse_chat(fields))
        except RequestError as e:
            if alone or e.code != "context_length_exceeded":
                raise
            return False
        return True
