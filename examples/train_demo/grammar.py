"""Helpers of the text generator: alternatives, articles, capitals, and typing errors."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from random import Random

_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_ARTICLE = re.compile(
    r"\b([Aa]) (?=(?:[aeiou]|hour|honest)(?!ne |uro|kulele|niform|nicorn|seful|sed ))"
)
_SENTENCE = re.compile(r"(^|\n|[.!?] |: \")(\"?)([a-z])")


@dataclass
class Exchange:
    """One question and its reply.

    `answer` is what an exact check looks for in the reply; `|` separates several right answers.
    `plain` is the question before typing errors were added to it.
    """

    user: str
    reply: str
    kind: str
    answer: str = ""
    follow: list[Exchange] = field(default_factory=list)
    plain: str = ""

    @property
    def left_out(self) -> bool:
        """Tell whether the exchange is held out of the training text, for the evaluation."""
        return bool(self.answer) and (held_out(self.user) or held_out(self.plain))


def choose(rng: Random, text: str) -> str:
    """Replace each `[a|b|c]` in a text, innermost first, by one of its alternatives."""
    while match := _ALTERNATIVES.search(text):
        pick = rng.choice(match.group(1).split("|"))
        text = text[: match.start()] + pick + text[match.end() :]
    return text


def polish(text: str) -> str:
    """Put `an` before vowels, a capital at the start of each sentence, and single spaces."""
    text = re.sub(r" {2,}", " ", text).strip()
    text = _ARTICLE.sub(r"\1n ", text)
    return _SENTENCE.sub(lambda m: m.group(1) + m.group(2) + m.group(3).upper(), text)


def write(rng: Random, text: str, **values: object) -> str:
    """Choose among the alternatives of a text, fill in `{name}` fields, and polish the result."""
    return polish(choose(rng, text).format(**values))


def typed(rng: Random, text: str) -> str:
    """Return a text as hurried people type it: lower case, no full stop, sometimes a typo."""
    text = polish(text)
    if rng.random() < 0.35:
        text = text.lower()
    if rng.random() < 0.3:
        text = text.rstrip(".?!")
    elif rng.random() < 0.05:
        text = text.rstrip(".?!") + rng.choice(["!", "??", " ?", "...", " please"])
    if rng.random() < 0.08 and len(text) > 14:
        text = _typo(rng, text)
    return text


def _typo(rng: Random, text: str) -> str:
    places = [i for i in range(1, len(text) - 1) if text[i].isalpha() and text[i + 1].isalpha()]
    if not places:
        return text
    i = rng.choice(places)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return text[:i] + text[i + 1 :] if kind == 1 else text[:i] + text[i] + text[i:]


def wording(text: str) -> str:
    """Return the words of a text, without capitals and punctuation."""
    return re.sub(r"[^a-z0-9+-]+", " ", text.lower()).strip()


def held_out(*parts: str, every: int = 40) -> bool:
    """Tell whether this combination is held out of the training text, as one of `every` is."""
    key = "|".join(wording(part) for part in parts)
    return zlib.crc32(key.encode()) % every == 0


def listed(words: list[str]) -> str:
    """Join words to a list in a sentence, as in `a, b and c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
