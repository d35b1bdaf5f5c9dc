"""Collects the parts (text, reasoning, calls) that format readers find."""

from __future__ import annotations

from collections.abc import Callable

from .parts import CallArguments, CallBegin, CallEnd, Part, Reasoning, Text


class Output:
    """Collects the parts of one choice.

    White space around calls and reasoning belongs to the format. It is dropped, except what
    separates the text before a call from the text after it.

    Args:
        new_id: returns an id for a call.
        most: maximum number of calls; further ones are not begun.

    Attributes:
        thinks: whether the reader is inside reasoning.
        full: whether the output has the maximum number of calls.
    """

    def __init__(self, new_id: Callable[[], str], most: int | None = None) -> None:
        self._new_id = new_id
        self._most = most
        self._parts: list[Part] = []
        self._space = ""  # white space after the text so far, which is output if more text follows
        self._gap = ""  # white space before or between calls
        self._said = False  # whether text was output since the reasoning
        self._fresh = False  # whether nothing was output since a call or the reasoning
        self._calls = 0
        self._open = False
        self.thinks = False

    @property
    def full(self) -> bool:
        """Tell whether the output has the maximum number of calls."""
        return self._most is not None and self._calls >= self._most and not self._open

    def take(self) -> list[Part]:
        """Return the parts since the last call."""
        parts, self._parts = self._parts, []
        return parts

    def text(self, text: str) -> None:
        """Output a piece of text or reasoning."""
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
        """Begin the reasoning."""
        self._change(thinks=True)

    def speak(self) -> None:
        """End the reasoning."""
        self._change(thinks=False)

    def _change(self, *, thinks: bool) -> None:
        self._space, self._gap, self._said, self._fresh = "", "", False, True
        self.thinks = thinks

    def begin(self, name: str, call_id: str | None = None) -> None:
        """Begin a call, which ends the reasoning."""
        if self.thinks:
            self.speak()
        self._gap, self._space = self._gap or self._space, ""
        self._fresh = self._open = True
        self._parts.append(CallBegin(self._calls, call_id or self._new_id(), name))

    def arguments(self, text: str) -> None:
        """Output a piece of the current call's arguments as JSON."""
        if text:
            self._parts.append(CallArguments(self._calls, text))

    def end(self, *, whole: bool = True) -> None:
        """End the current call; `whole` tells whether its arguments are complete."""
        self._parts.append(CallEnd(self._calls, whole))
        self._calls += 1
        self._open = False

    def finish(self) -> None:
        """End the output, and an open call with it."""
        if self._open:
            self.end(whole=False)
        elif not self.thinks and not self._fresh and self._space:
            self._parts.append(Text(self._space))
        self._space = ""
