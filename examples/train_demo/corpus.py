"""The training text of the demo model: chats and stories, made by rules from a seed.

No text from elsewhere is used. `python corpus.py 5` prints five documents.
"""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from random import Random

from arithmetic import calculation
from dialogue import shrug
from everyday import everyday
from followups import follow_ups
from grammar import Exchange, choose, held_out, typed
from knowledge import fact
from lists import lists_and_poems
from project import project
from refusals import refusal
from smalltalk import farewell, hello, introduction, talk, well
from stories import Story, tell
from wishes import story_exchange

BOS, END, SYSTEM, USER, ASSISTANT, PAD = (
    "<|bos|>",
    "<|end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|pad|>",
)
SPECIAL = (BOS, END, SYSTEM, USER, ASSISTANT, PAD)

SYSTEM_PROMPTS = (
    "[You are a helpful assistant.|You are Demo, the small model of Wherry.|You are a friendly storyteller.|You are a helpful, polite "
    "assistant.|Answer briefly.|Be kind and brief.|You are a chat assistant.|You are a small language model.|Tell stories for children.|"
    "You answer simple questions.|Help the user.]"
)
# Kinds of exchanges and how often each is drawn.
SINGLE = {
    fact: 6.0,
    calculation: 5.0,
    everyday: 4.5,
    talk: 3.0,
    project: 2.5,
    refusal: 2.5,
    lists_and_poems: 2.5,
}

# Kinds of conversations: first many stories, which teach the language, then more facts.
EARLY = {"story": 30, "sums": 10, "facts": 10, "mixed": 50}
LATE = {"story": 18, "sums": 20, "facts": 38, "mixed": 24}


def single(rng: Random) -> list[Exchange]:
    """Return one exchange which is not held out, with those that follow on it."""
    while True:
        exchange = rng.choices(list(SINGLE), list(SINGLE.values()))[0](rng)
        if not exchange.left_out:
            break
    extra = [shrug(rng)] if rng.random() < 0.04 else []
    return [exchange, *exchange.follow, *extra]


def _taken_up(rng: Random, offer: str) -> list[Exchange]:
    """Let the user take up what the reply `offer` has asked, now and then."""
    if rng.random() < 0.5:
        return []
    if "a story?" in offer or "bedtime story?" in offer:
        yes = "[Yes|Yes, please|Yes please!|Sure|OK|Yes, tell me a story|Please do|yes!|Of course]"
        story = tell(rng, {})
        return [
            Exchange(typed(rng, choose(rng, yes)), story.text, "story"),
            *follow_ups(rng, story),
        ]
    if offer.endswith(("And you?", "How are you?")):
        return [well(rng)]
    return []


def _singles(rng: Random, count: int) -> list[Exchange]:
    result: list[Exchange] = []
    for _ in range(count):
        result += single(rng)
        result += _taken_up(rng, result[-1].reply)
    return result


def _burst(rng: Random, topic: Callable[[Random], Exchange], count: int) -> list[Exchange]:
    """Return many questions of one kind; these are short, so that facts are seen often."""
    exchanges = (topic(rng) for _ in range(count))
    return [e for e in exchanges if not e.left_out]


def _any_fact(rng: Random) -> Exchange:
    topics = {fact: 9.0, everyday: 2.0, project: 1.0, refusal: 1.5, lists_and_poems: 1.5}
    return rng.choices(list(topics), list(topics.values()))[0](rng)


def wished_story(rng: Random) -> tuple[Exchange, Story]:
    """Return a wish which is not held out, with its story."""
    while held_out((wished := story_exchange(rng))[0].user):
        pass
    return wished


def chat(rng: Random, mix: dict[str, int]) -> list[Exchange]:
    """Return the exchanges of one conversation; mix says how often each kind of it is drawn."""
    result = [hello(rng)] if rng.random() < 0.15 else []
    if rng.random() < 0.07:
        result += introduction(rng)
    way = rng.choices(list(mix), list(mix.values()))[0]
    if way == "story":
        exchange, story = wished_story(rng)
        result += [exchange, *follow_ups(rng, story)]
        if rng.random() < 0.15:
            result += single(rng)
    elif way == "sums":
        result += _burst(rng, calculation, rng.randint(4, 10))
    elif way == "facts":
        result += _burst(rng, _any_fact, rng.randint(3, 8))
    else:
        result += _singles(rng, rng.choice([1, 1, 2, 2, 3, 4]))
        if rng.random() < 0.06:
            exchange, story = wished_story(rng)
            result += [exchange, *follow_ups(rng, story)]
    if not result or rng.random() < 0.12:
        result.append(farewell(rng))
    return result


def render(exchanges: list[Exchange], system: str = "") -> str:
    """Render a conversation exactly as the chat template does."""
    text = BOS + (f"{SYSTEM}{system}{END}" if system else "")
    return text + "".join(f"{USER}{e.user}{END}{ASSISTANT}{e.reply}{END}" for e in exchanges)


def document(rng: Random, mix: dict[str, int] = EARLY) -> str:
    """Return one document: a chat, or a story without the form of a chat."""
    if rng.random() < 0.06:
        return BOS + tell(rng, {}).text + END
    system = choose(rng, SYSTEM_PROMPTS) if rng.random() < 0.1 else ""
    return render(chat(rng, mix), system)


def documents(seed: int, count: int) -> Iterator[str]:
    """Yield count documents; the same seed always gives the same text."""
    rng = Random(seed)
    for _ in range(count):
        yield document(rng)


if __name__ == "__main__":
    for text in documents(seed=0, count=int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        sys.stdout.write(text.replace(END, "\n") + "\n")
