"""Stop strings, found across the borders of tokens, in time that does not grow with their number.

The automaton of Aho and Corasick ("Efficient string matching", 1975), whose states are made when a
text first reaches them: a thousand long strings cost a sort, and what the text comes near to.
Libraries for it (pyahocorasick, ahocorasick_rs) do not tell how much of a pattern stands at the
end of the text, which is what must be held back, and build all states at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class _State:
    """A beginning of stop strings: `depth` characters that stops[low:high] share."""

    __slots__ = ("depth", "ends", "fail", "high", "low", "next")

    def __init__(self, low: int, high: int, depth: int) -> None:
        self.low, self.high, self.depth = low, high, depth
        self.next: dict[str, _State] = {}
        self.fail: _State | None = None  # of its proper ends, the longest that is a beginning too
        self.ends = 0  # length of the longest stop string that ends here


class StopAutomaton:
    """The stop strings of a request; its choices share it, one thread at a time."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = sorted({s for s in stops if s})
        self._firsts = frozenset(s[0] for s in self._stops)
        self.start = _State(0, len(self._stops), 0)

    def after(self, state: _State, char: str) -> _State:
        """The state for the longest beginning at the end of the text, one character later."""
        if state.depth == 0 and char not in self._firsts:
            return state
        made: list[_State] = []
        at: _State | None = state
        while at is not None and char not in at.next:
            if new := self._longer(at, char):
                at.next[char] = new
                made.append(new)
            at = at.fail
        found = self.start if at is None else at.next[char]
        for new in reversed(made):  # the shorter ones first: `ends` is theirs or its own
            new.fail = found
            new.ends = new.depth if len(self._stops[new.low]) == new.depth else found.ends
            found = new
        return found

    def _longer(self, state: _State, char: str) -> _State | None:
        def at_depth(stop: str) -> str:
            return stop[state.depth : state.depth + 1]

        low = bisect_left(self._stops, char, state.low, state.high, key=at_depth)
        high = bisect_right(self._stops, char, low, state.high, key=at_depth)
        return _State(low, high, state.depth + 1) if low < high else None


class StopStrings:
    """Passes a text through until a stop string is complete.

    Text that may be the beginning of one is held back. Of several stop strings the one that is
    complete first counts (the longest of those that end at the same place), so the result does not
    depend on how the text was cut.

    Attributes:
        found: the stop string that ended the text; None if none has.
    """

    def __init__(self, automaton: StopAutomaton) -> None:
        self._automaton = automaton
        self._state = automaton.start
        self._held = ""
        self.found: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether one was found; what follows it is not wanted."""
        return self.found is not None

    def push(self, text: str) -> str:
        """Text that is certain to belong to the output; "" once stopped."""
        if self.stopped:
            return ""
        state, step = self._state, self._automaton.after
        for i, char in enumerate(text):
            state = step(state, char)
            if state.ends:
                text = self._held + text[: i + 1]
                self._held = ""
                self.found = text[len(text) - state.ends :]
                return text[: len(text) - state.ends]
        self._state = state
        text = self._held + text
        out = len(text) - state.depth
        self._held = text[out:]
        return text[:out]

    def flush(self) -> str:
        """What was held back, at the end of the text."""
        text, self._held = self._held, ""
        return text
