"""What is asked: random prompts of a wanted number of tokens, sized by the server's own counts.

A prompt is English words in random order, so that no two requests share more than a chat template's
beginning. How many tokens a word has, only the server knows: two short prompts ask it, of which one
has every word. With large vocabularies a word is a token; with the demo's it has one to six, so a
prompt has each word once before it has one again, and about the tokens that were asked for.
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
_SIZING_WORDS = (1, len(WORDS))  # of the two prompts
_FEWER_WORDS = 40  # of the second, where the context is too small for all


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens from `low` to `high`, each as likely as the others."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Lengths:
        """128, or 64-256.

        Raises:
            UsageError: it is neither.
        """
        low, dash, high = text.partition("-")
        numbers = (low, high if dash else low)
        if not all(n.isascii() and n.isdigit() for n in numbers) or not 0 < int(low) <= int(
            numbers[1]
        ):
            raise UsageError(f"{text!r} is no number of tokens; type 128, or 64-256 for a range")
        return cls(int(low), int(numbers[1]))

    def __str__(self) -> str:
        """The range as it is typed."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def draw(self, rng: random.Random) -> int:
        """One of them."""
        return rng.randint(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many tokens a prompt of words has."""

    per_word: float = 1.0
    fixed: float = 0.0  # of the chat template

    def words(self, tokens: int) -> int:
        """Number of words for a prompt of `tokens` tokens, at least one."""
        return max(1, round((tokens - self.fixed) / self.per_word))


@dataclass(frozen=True, slots=True)
class Shape:
    """What all requests have in common."""

    chat: bool = True
    extra: Mapping[str, Any] | None = None  # further fields of each body

    def body(self, text: str, max_tokens: int) -> dict[str, Any]:
        """The body that asks for an answer to a text."""
        messages = [{"role": "user", "content": text}]
        prompt = {"messages": messages} if self.chat else {"prompt": text}
        return {**prompt, "max_tokens": max_tokens, **(self.extra or {})}


def text(count: int, rng: random.Random) -> str:
    """So many words, separated by spaces: all in some order, then all in another."""
    rounds = -(-count // len(WORDS))
    words = itertools.chain.from_iterable(rng.sample(WORDS, len(WORDS)) for _ in range(rounds))
    return " ".join(itertools.islice(words, count))


async def sizing(target: Target, shape: Shape, seed: int) -> Sizing:
    """Ask the server how many tokens words have; one a word if it does not count them.

    Raises:
        UsageError: it does not answer; the message has its reason.
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


async def _tokens(target: Target, shape: Shape, prompt: str) -> int:
    """Tokens of a prompt as the server counts them; 0 if it does not."""
    made = await ask(target, Ask(body=shape.body(prompt, 1)))
    if made.error is not None:
        raise UsageError(f"{target.name} does not answer: {made.error}")
    return made.prompt_tokens


def random_asks(
    shape: Shape, sizing: Sizing, prompts: Lengths, outputs: Lengths, seed: object
) -> Iterator[Ask]:
    """Requests without end; the same seed gives the same ones."""
    rng = random.Random(f"asks {seed}")
    while True:
        words = text(sizing.words(prompts.draw(rng)), rng)
        yield Ask(body=shape.body(words, outputs.draw(rng)))


def at_rate(asks: Iterator[Ask], rate: float, seed: int) -> Iterator[Ask]:
    """Give requests the times of a Poisson process of `rate` a second."""
    rng = random.Random(f"times {seed}")
    times = itertools.accumulate(-math.log(1 - rng.random()) / rate for _ in itertools.count())
    return (Ask(body=a.body, at=t) for a, t in zip(asks, times, strict=False))
