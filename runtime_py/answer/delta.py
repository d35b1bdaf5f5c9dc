"""What some events add to one choice, in no protocol's shape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .parts import Message, Part, Text, message_of
from .shapes import FinishReason


class LoggedToken(NamedTuple):
    """A token with its log probability, as both of OpenAI's shapes need it."""

    piece: bytes
    logprob: float | None  # None: the first of a prompt
    top: Collection[tuple[bytes, float]]
    offset: int  # characters of the output before it


class Pieces(Collection[tuple[bytes, float]]):
    """The alternatives of a token, whose pieces are looked up when they are read.

    Args:
        top: token ids with their log probabilities.
        piece: what a token stands for.
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
    """A token of the prompt, as vLLM tells of it; the first one has no probability."""

    token: int
    logprob: float
    top: Collection[tuple[int, float]]


@dataclass(slots=True)
class Delta:
    """What is new of one choice, or all of it.

    Attributes:
        parts: text, reasoning and calls, in their order.
        logprobs: of all tokens whose text is out, markers of calls and of reasoning too.
        prompt: tokens of the prompt from the second on, if they were asked for.
        finish: why it ended; None while it goes on. "tool_calls" if it came to its end by itself
            and tools were called.
        stop: the stop string that ended it; None if none has.
    """

    index: int
    parts: list[Part] = field(default_factory=list)
    logprobs: list[LoggedToken] = field(default_factory=list)
    prompt: list[PromptToken] = field(default_factory=list)
    finish: FinishReason | None = None
    stop: str | None = None

    @property
    def text(self) -> str:
        """What the user reads of it."""
        return "".join(p.text for p in self.parts if isinstance(p, Text))

    @property
    def message(self) -> Message:
        """The parts by kind; of a piece of a stream only if it begins its calls itself."""
        return message_of(self.parts)
