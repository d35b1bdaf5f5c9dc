"""Finds stop strings across token borders, in time that does not grow with their number.

The algorithm is that of Aho and Corasick ("Efficient string matching", 1975); a state is built when
a text first reaches it, so a thousand long strings cost a sort. Libraries for it (pyahocorasick,
ahocorasick_rs) build all states at once, and do not tell how much of a pattern stands at the end of
the text, which must be withheld.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class _State:
    """A state of the automaton: a prefix, of `depth` characters, that stops[low:high] share."""

    __slots__ = ("depth", "ends", "fail", "high", "low", "next")

    def __init__(self, low: int, high: int, depth: int) -> None:
        self.low, self.high, self.depth = low, high, depth
        self.next: dict[str, _State] = {}
        # State of the longest proper suffix that is a prefix of a stop string.
        self.fail: _State | None = None
        self.ends = 0  # length of the longest stop string that ends in this state


class StopAutomaton:
    """The automaton for a request's stop strings; all choices share it, one thread at a time.

    Args:
        stops: the stop strings.
        keeps: whether a text ends with its stop string; otherwise before it.
    """

    def __init__(self, stops: Sequence[str], *, keeps: bool = False) -> None:
        self.keeps = keeps
        self._stops = sorted({s for s in stops if s})
        self._firsts = frozenset(s[0] for s in self._stops)
        self.start = _State(0, len(self._stops), 0)

    def after(self, state: _State, char: str) -> _State:
        """Return the next state: the longest prefix of a stop string at the end of the text."""
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
        for new in reversed(made):  # shorter prefixes first, because `ends` may come from them
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
    """Passes text through until a stop string is complete.

    Text that may begin a stop string is withheld. The stop string that is complete first wins (the
    longest of those that end at the same place), so the result does not depend on how the text was
    cut.

    Attributes:
        found: the stop string that ended the text, or None.
    """

    def __init__(self, automaton: StopAutomaton) -> None:
        self._automaton = automaton
        self._state = automaton.start
        self._held = ""
        self.found: str | None = None

    @property
    def stopped(self) -> bool:
        """Tell whether a stop string was found; later text is dropped."""
        return self.found is not None

    def push(self, text: str) -> str:
        """Return text that certainly belongs to the output; "" after a stop string."""
        if self.stopped:
            return ""
        state, step = self._state, self._automaton.after
        for i, char in enumerate(text):
            state = step(state, char)
            if state.ends:
                text = self._held + text[: i + 1]
                self._held = ""
                self.found = text[len(text) - state.ends :]
                return text if self._automaton.keeps else text[: len(text) - state.ends]
        self._state = state
        text = self._held + text
        out = len(text) - state.depth
        self._held = text[out:]
        return text[:out]

    def flush(self) -> str:
        """Return the text that was withheld; call this at the end of the output."""
        text, self._held = self._held, ""
        return text
