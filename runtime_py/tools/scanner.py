"""Reads a text that arrives in pieces, from top to bottom.

A reader is a generator: it yields if it needs more text, and is resumed when more has arrived or
the text has ended. So each construct of a format is a plain function, and the result cannot depend
on where the text was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]  # a reader (generator) and the type of its result
Emit = Callable[[str], None]

_SPACE = re.compile(r"\s*")


class Scanner:
    """The text and the position of the reader.

    Attributes:
        text: the text so far.
        at: index of the next character.
        ended: whether the text is complete.
    """

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.ended = False
        self._held = False  # whether text must be kept, so that positions stay valid
        self._dropped = 0  # number of characters that were dropped before `text`

    def feed(self, text: str) -> None:
        """Append text that has arrived."""
        if self.at and not self._held:
            self._dropped += self.at
            self.text, self.at = self.text[self.at :], 0
        self.text += text

    @property
    def place(self) -> int:
        """Return the number of characters that were read so far."""
        return self._dropped + self.at

    def attempt(self, reader: Steps[bool]) -> Steps[bool]:
        """Run a reader; if it fails, return to the old position, unless `release` made it final."""
        start, self._held = self.at, True
        found = yield from reader
        if not found:
            self.at = start
        self._held = False
        return found

    def release(self) -> None:
        """Make the position final: the current attempt will not fail."""
        self._held = False

    def more(self) -> Steps[bool]:
        """Wait for more text; return whether more has come."""
        ahead = len(self.text) - self.at
        while len(self.text) - self.at == ahead and not self.ended:
            yield
        return len(self.text) - self.at > ahead

    def next(self) -> Steps[str]:
        """Return the next character without reading it; "" at the end."""
        while self.at == len(self.text):
            if not (yield from self.more()):
                return ""
        return self.text[self.at]

    def space(self) -> Steps[str]:
        """Skip white space; return the next character without reading it."""
        while True:
            match = _SPACE.match(self.text, self.at)
            assert match
            self.at = match.end()
            char = yield from self.next()
            if not char or not char.isspace():
                return char

    def accept(self, literal: str) -> Steps[bool]:
        """Read `literal` if it comes next; return whether it did."""
        while True:
            there = self.text[self.at : self.at + len(literal)]
            if not literal.startswith(there):
                return False
            if there == literal:
                self.at += len(literal)
                return True
            if not (yield from self.more()):
                return False

    def accept_one(self, literals: tuple[str, ...]) -> Steps[str | None]:
        """Read the first of `literals` that comes next and return it; None if none does."""
        for literal in literals:
            if (yield from self.accept(literal)):
                return literal
        return None

    def until(self, literals: tuple[str, ...], emit: Emit) -> Steps[str]:
        """Output text up to the first of `literals`, read and return it; "" at the end.

        If several literals begin at one place, the longest counts.
        """
        found = re.compile("|".join(map(re.escape, sorted(literals, key=len, reverse=True))))
        while True:
            match = found.search(self.text, self.at)
            # An earlier, longer literal may contain the one that was found.
            safe = self._safe(literals)
            if match and match.start() <= safe and not self._may_grow(match, literals):
                emit(self.text[self.at : match.start()])
                self.at = match.end()
                return match[0]
            safe = min(match.start(), safe) if match else safe
            emit(self.text[self.at : safe])
            self.at = safe
            if not (yield from self.more()):
                if match is None:
                    emit(self.text[self.at :])
                    self.at = len(self.text)
                    return ""
                continue

    def _may_grow(self, found: re.Match[str], literals: tuple[str, ...]) -> bool:
        """Tell whether further text may turn a match into a longer literal."""
        rest = self.text[found.start() :]
        return not self.ended and any(
            len(other) > len(rest) and other.startswith(rest) and other != found[0]
            for other in literals
        )

    def _safe(self, literals: tuple[str, ...]) -> int:
        """Return the position from which the text may be the beginning of a literal."""
        end = len(self.text)
        if self.ended:
            return end
        longest = max(map(len, literals), default=0) - 1
        for start in range(max(self.at, end - longest), end):
            rest = self.text[start:]
            if any(literal.startswith(rest) for literal in literals):
                return start
        return end

    def match(self, pattern: re.Pattern[str], most: int = 512) -> Steps[str]:
        """Read the longest match, once the text after it has arrived; "" if nothing matches.

        Args:
            pattern: an expression that matches every prefix of its matches, or the empty text.
            most: maximum number of characters that are searched.
        """
        while True:
            found = pattern.match(self.text, self.at, self.at + most)
            end = found.end() if found else self.at
            if end < len(self.text) or end - self.at >= most or not (yield from self.more()):
                taken, self.at = self.text[self.at : end], end
                return taken
