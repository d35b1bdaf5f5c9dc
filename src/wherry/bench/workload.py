"""Generates random prompts of a given number of tokens, sized by the server's own counts.

A prompt is English words in random order, so that two requests share only the beginning of a chat
template. Only the server knows how many tokens a word has: two short prompts measure it, one of
them with every word. In large vocabularies a word is a token, in the demo model's one to six; a
prompt uses each word once before it repeats one, so its length is close to the requested one.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wherry.errors import UsageError

from .outcome import Ask, Target, ask

WORDS = (
    "the of and to in is that for it was on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find "
    "use may water long little very after words called just where most know get through back "
    "much before go good new write our used me man too any day same right look think also around "
    "another came come work three word must because does part even place well such here take why "
    "things help put years different away again off went old number great tell men say small"
).split()
_SIZING_WORDS = (1, len(WORDS))  # numbers of words in the two sizing prompts
_FEWER_WORDS = 40  # words of the second sizing prompt, if the context is too small for all words


@dataclass(frozen=True, slots=True)
class Lengths:
    """A uniform distribution of lengths from `low` to `high` tokens."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Lengths:
        """Parse lengths such as 128 or 64-256.

        Raises:
            UsageError: the text is neither a number nor a range.
        """
        low, dash, high = text.partition("-")
        numbers = (low, high if dash else low)
        if not all(n.isascii() and n.isdigit() for n in numbers) or not 0 < int(low) <= int(
            numbers[1]
        ):
            raise UsageError(f"{text!r} is not a number of tokens; type 128, or 64-256 for a range")
        return cls(int(low), int(numbers[1]))

    def __str__(self) -> str:
        """Return the range in the form that `parse` reads."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def draw(self, rng: random.Random) -> int:
        """Draw a random length."""
        return rng.randint(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many tokens a server counts for a prompt of words."""

    per_word: float = 1.0
    fixed: float = 0.0  # tokens of the chat template

    def words(self, tokens: int) -> int:
        """Return the number of words for a prompt of `tokens` tokens, at least one."""
        return max(1, round((tokens - self.fixed) / self.per_word))


@dataclass(frozen=True, slots=True)
class RequestShape:
    """The common part of all requests."""

    chat: bool = True
    extra: Mapping[str, Any] | None = None  # further fields of each request body

    def body(self, text: str, max_tokens: int) -> dict[str, Any]:
        """Return the request body for a text."""
        messages = [{"role": "user", "content": text}]
        prompt = {"messages": messages} if self.chat else {"prompt": text}
        return {**prompt, "max_tokens": max_tokens, **(self.extra or {})}


def text(count: int, rng: random.Random) -> str:
    """Return `count` words: all words in random order, then all in another order, and so on."""
    rounds = -(-count // len(WORDS))
    words = itertools.chain.from_iterable(rng.sample(WORDS, len(WORDS)) for _ in range(rounds))
    return " ".join(itertools.islice(words, count))


async def sizing(target: Target, shape: RequestShape, seed: int) -> Sizing:
    """Measure tokens per word at a server; one token per word if it reports no counts.

    Raises:
        UsageError: the server does not respond; the message has the reason.
    """
    rng = random.Random(f"sizing {seed}")
    few, many = _SIZING_WORDS
    least = await _tokens(target, shape, text(few, rng))
    try:
        most = await _tokens(target, shape, text(many, rng))
    except UsageError:
        many = _FEWER_WORDS
        most = await _tokens(target, shape, text(many, rng))
    if not least or most <= least:
        return Sizing()
    per_word = (most - least) / (many - few)
    return Sizing(per_word, least - per_word * few)


async def _tokens(target: Target, shape: RequestShape, prompt: str) -> int:
    """Return the server's token count of a prompt; 0 if it reports none."""
    outcome = await ask(target, Ask(body=shape.body(prompt, 1)))
    if outcome.error is not None:
        raise UsageError(f"{target.name} does not answer: {outcome.error}")
    return outcome.prompt_tokens


def random_asks(
    shape: RequestShape, sizing: Sizing, prompts: Lengths, outputs: Lengths, seed: object
) -> Iterator[Ask]:
    """Yield requests without end; equal seeds give equal requests."""
    rng = random.Random(f"asks {seed}")
    while True:
        words = text(sizing.words(prompts.draw(rng)), rng)
        yield Ask(body=shape.body(words, outputs.draw(rng)))


def at_rate(asks: Iterator[Ask], rate: float, seed: int) -> Iterator[Ask]:
    """Yield requests at the times of a Poisson process with `rate` requests per second."""
    rng = random.Random(f"times {seed}")
    times = itertools.accumulate(-math.log(1 - rng.random()) / rate for _ in itertools.count())
    return (Ask(body=a.body, at=t) for a, t in zip(asks, times, strict=False))
