"""The increment that new events add to one choice, independent of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..tools.parts import Message, Part, Text, message_of
from .shapes import FinishReason


class LoggedToken(NamedTuple):
    """A token with its log probability, in the form that both of OpenAI's shapes need."""

    piece: bytes
    logprob: float | None  # log probability; None for the first prompt token
    top: Collection[tuple[bytes, float]]
    offset: int  # characters of output before this token


class Pieces(Collection[tuple[bytes, float]]):
    """The alternatives of a token, whose texts are looked up when they are read.

    Args:
        top: token ids and log probabilities.
        piece: returns the text of a token id.
    """

    __slots__ = ("_piece", "_top")

    def __init__(self, top: Collection[tuple[int, float]], piece: Callable[[int], bytes]) -> None:
        self._top = top
        self._piece = piece

    def __len__(self) -> int:
        return len(self._top)

    def __iter__(self) -> Iterator[tuple[bytes, float]]:
        piece = self._piece
        return iter([(piece(token), logprob) for token, logprob in self._top])

    def __contains__(self, item: object) -> bool:
        return item in tuple(self)


class PromptToken(NamedTuple):
    """A token of the prompt for vLLM's `prompt_logprobs`; the first one has no probability."""

    token: int
    logprob: float
    top: Collection[tuple[int, float]]


@dataclass(slots=True)
class Delta:
    """New parts of one choice (a stream), or all of its parts (a whole response).

    Attributes:
        parts: text, reasoning and calls, in order.
        logprobs: of all tokens whose text is released, including markers of calls and reasoning.
        prompt: prompt tokens from the second one on, if they were requested.
        finish: why the choice ended; None while it runs. "tool_calls" if the model called tools and
            then stopped by itself.
        stop: the stop string that ended it, or None.
    """

    index: int
    parts: list[Part] = field(default_factory=list)
    logprobs: list[LoggedToken] = field(default_factory=list)
    prompt: list[PromptToken] = field(default_factory=list)
    finish: FinishReason | None = None
    stop: str | None = None

    @property
    def text(self) -> str:
        """Return the new text of the answer, without reasoning and tool calls."""
        return "".join(p.text for p in self.parts if isinstance(p, Text))

    @property
    def message(self) -> Message:
        """Return the parts by kind.

        In a stream only if the delta has the beginning of its tool calls.
        """
        return message_of(self.parts)
