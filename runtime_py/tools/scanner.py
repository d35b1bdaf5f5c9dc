"""Reading a text that comes in pieces, from top to bottom.

A reader is a generator: it yields where it needs text that has not come yet, and is resumed when
there is more, or none will come. So a format is read by plain code, a function for each of its
constructs, and the result cannot depend on how the text was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]  # a reader, and what it comes to
Emit = Callable[[str], None]

_SPACE = re.compile(r"\s*")


class Scanner:
    """The text, and how far it was read.

    Attributes:
        text: what has come.
        at: where the next character is.
        ended: no more will come.
    """

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.ended = False
        self._held = False  # positions are remembered
        self._dropped = 0  # characters that were before `text`

    def feed(self, text: str) -> None:
        """Append what has come."""
        if self.at and not self._held:
            self._dropped += self.at
            self.text, self.at = self.text[self.at :], 0
        self.text += text

    @property
    def place(self) -> int:
        """Characters that were read, of all that has come."""
        return self._dropped + self.at

    def attempt(self, reader: Steps[bool]) -> Steps[bool]:
        """Read; if that comes to nothing, nothing is taken. `release` ends the doubt."""
        start, self._held = self.at, True
        found = yield from reader
        if not found:
            self.at = start
        self._held = False
        return found

    def release(self) -> None:
        """What is being attempted will not fail any more."""
        self._held = False

    def more(self) -> Steps[bool]:
        """Wait; whether there is more text than before."""
        ahead = len(self.text) - self.at
        while len(self.text) - self.at == ahead and not self.ended:
            yield
        return len(self.text) - self.at > ahead

    def next(self) -> Steps[str]:
        """The next character, which is not taken; "" at the end."""
        while self.at == len(self.text):
            if not (yield from self.more()):
                return ""
        return self.text[self.at]

    def space(self) -> Steps[str]:
        """Skip white space; the character after it, not taken."""
        while True:
            match = _SPACE.match(self.text, self.at)
            assert match
            self.at = match.end()
            char = yield from self.next()
            if not char or not char.isspace():
                return char

    def accept(self, literal: str) -> Steps[bool]:
        """Take `literal` if it comes next."""
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
        """Take the first of these that comes next; None if none does."""
        for literal in literals:
            if (yield from self.accept(literal)):
                return literal
        return None

    def until(self, literals: tuple[str, ...], emit: Emit) -> Steps[str]:
        """Hand out text up to the first of these, which is taken too; which one, "" at the end.

        Of several that begin at one place the longest is meant.
        """
        found = re.compile("|".join(map(re.escape, sorted(literals, key=len, reverse=True))))
        while True:
            match = found.search(self.text, self.at)
            safe = self._safe(literals)  # one that begins before may hold the one that was found
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
        """Whether what comes may make a longer one of it."""
        rest = self.text[found.start() :]
        return not self.ended and any(
            len(other) > len(rest) and other.startswith(rest) and other != found[0]
            for other in literals
        )

    def _safe(self, literals: tuple[str, ...]) -> int:
        """Where the text that may be the beginning of one of these begins."""
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
        """Take the longest text that matches, when what follows it is there; "" if none does.

        Args:
            pattern: each beginning of what it matches is matched too, or empty.
            most: characters that are looked at.
        """
        while True:
            found = pattern.match(self.text, self.at, self.at + most)
            end = found.end() if found else self.at
            if end < len(self.text) or end - self.at >= most or not (yield from self.more()):
                taken, self.at = self.text[self.at : end], end
                return taken
