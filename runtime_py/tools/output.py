"""Where readers put what they find; it becomes parts."""

from __future__ import annotations

from collections.abc import Callable

from ..answer.parts import CallArguments, CallBegin, CallEnd, Part, Reasoning, Text


class Output:
    """The parts of one choice as they are found.

    White space before and after calls, and around reasoning, belongs to the format: it is left out,
    but for what keeps the words before a call from those after it.

    Args:
        new_id: makes the id of a call.
        most: calls that are wanted; more are not begun.

    Attributes:
        thinks: whether the reader is inside reasoning.
        full: no more calls are wanted.
    """

    def __init__(self, new_id: Callable[[], str], most: int | None = None) -> None:
        self._new_id = new_id
        self._most = most
        self._parts: list[Part] = []
        self._space = ""  # that follows the text so far; kept if more text follows
        self._gap = ""  # space before or between calls
        self._said = False  # text has been written since reasoning
        self._fresh = False  # nothing has been written since a call, or since reasoning
        self._calls = 0
        self._open = False
        self.thinks = False

    @property
    def full(self) -> bool:
        """See above."""
        return self._most is not None and self._calls >= self._most and not self._open

    def take(self) -> list[Part]:
        """What was found since the last time."""
        parts, self._parts = self._parts, []
        return parts

    def text(self, text: str) -> None:
        """Some of what the user reads, or of the reasoning."""
        text = self._space + text
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if not shown:
            return
        if self._fresh:
            words = shown.lstrip()
            gap = self._gap or shown[: len(shown) - len(words)]
            shown = (gap if self._said else "") + words
        self._fresh, self._said, self._gap = False, not self.thinks, ""
        self._parts.append(Reasoning(shown) if self.thinks else Text(shown))

    def think(self) -> None:
        """Reasoning begins."""
        self._change(thinks=True)

    def speak(self) -> None:
        """Reasoning has ended."""
        self._change(thinks=False)

    def _change(self, *, thinks: bool) -> None:
        self._space, self._gap, self._said, self._fresh = "", "", False, True
        self.thinks = thinks

    def begin(self, name: str, call_id: str | None = None) -> None:
        """A call begins. It ends reasoning."""
        if self.thinks:
            self.speak()
        self._gap, self._space = self._gap or self._space, ""
        self._fresh = self._open = True
        self._parts.append(CallBegin(self._calls, call_id or self._new_id(), name))

    def arguments(self, text: str) -> None:
        """Some of its arguments, JSON."""
        if text:
            self._parts.append(CallArguments(self._calls, text))

    def end(self, *, whole: bool = True) -> None:
        """It ends."""
        self._parts.append(CallEnd(self._calls, whole))
        self._calls += 1
        self._open = False

    def finish(self) -> None:
        """The text has ended."""
        if self._open:
            self.end(whole=False)
        elif not self.thinks and not self._fresh and self._space:
            self._parts.append(Text(self._space))
        self._space = ""
