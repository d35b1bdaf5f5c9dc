"""Stop strings, found across the borders of tokens."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Passes text through until one of `stops` is complete.

    Text that may be the beginning of a stop string is held back. Of several stop strings the one
    that is complete first counts (the longest of those that end at the same place), so the result
    does not depend on how the text was cut.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(s for s in stops if s)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """Text that is certain to belong to the output; "" once stopped."""
        if self.stopped:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        if (start := self._first_stop(text)) is not None:
            self.stopped, self._held = True, ""
            return text[:start]
        keep = self._possible_beginning(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """What was held back, at the end of the text."""
        text, self._held = self._held, ""
        return text

    def _first_stop(self, text: str) -> int | None:
        """Where the stop string begins that is complete first."""
        found = [(at + len(s), at) for s in self._stops if (at := text.find(s)) >= 0]
        return min(found)[1] if found else None

    def _possible_beginning(self, text: str) -> int:
        """Length of the longest end of `text` with which a stop string begins."""
        longest = min(len(text), max(map(len, self._stops)) - 1)
        return next((n for n in range(longest, 0, -1) if self._begins(text[-n:])), 0)

    def _begins(self, end: str) -> bool:
        return any(s.startswith(end) for s in self._stops)
