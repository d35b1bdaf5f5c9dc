"""What some events add to one choice, in no protocol's shape."""

from __future__ import annotations

from dataclasses import dataclass, field

from .parts import Message, Part, Text, message_of
from .shapes import FinishReason


@dataclass(frozen=True, slots=True)
class LoggedToken:
    """A token with its log probability, as both of OpenAI's shapes need it."""

    piece: bytes
    logprob: float | None  # None: the first of a prompt
    top: list[tuple[bytes, float]]
    offset: int  # characters of the output before it


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token of the prompt, as vLLM tells of it; the first one has no probability."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


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
