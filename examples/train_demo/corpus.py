"""Generates the training text of the demo model: chats and stories, by rules and a seed.

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
from knowledge import fact, what_is
from lists import lists_and_poems
from project import project
from refusals import refusal
from smalltalk import farewell, hello, introduction, small_talk_exchange, well
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
# Kinds of exchanges, and the weight with which each is drawn.
SINGLE = {
    fact: 6.0,
    calculation: 5.0,
    everyday: 4.5,
    small_talk_exchange: 6.0,
    project: 2.5,
    refusal: 2.5,
    lists_and_poems: 2.5,
}

# Kinds of conversations with their weights; early training has many stories, which teach the
# language.
EARLY = {"story": 30, "sums": 10, "facts": 10, "mixed": 50}
LATE = {"story": 24, "sums": 14, "facts": 26, "kinds": 14, "mixed": 22}


def single(rng: Random) -> list[Exchange]:
    """Return one exchange that is not held out, with its follow-up exchanges."""
    while True:
        exchange = rng.choices(list(SINGLE), list(SINGLE.values()))[0](rng)
        if not exchange.left_out:
            break
    extra = [shrug(rng)] if rng.random() < 0.04 else []
    return [exchange, *exchange.follow, *extra]


def _taken_up(rng: Random, offer: str) -> list[Exchange]:
    """Return exchanges in which the user sometimes accepts the offer in a reply."""
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
    """Return many questions of one kind; they are short, so that facts occur often."""
    exchanges = (topic(rng) for _ in range(count))
    return [e for e in exchanges if not e.left_out]


def _any_fact(rng: Random) -> Exchange:
    topics = {
        fact: 9.0,
        everyday: 2.0,
        project: 1.0,
        refusal: 1.5,
        lists_and_poems: 1.5,
        small_talk_exchange: 2.0,
    }
    return rng.choices(list(topics), list(topics.values()))[0](rng)


def _kind(rng: Random) -> Exchange:
    topics = {what_is: 6.0, small_talk_exchange: 2.5, refusal: 1.5}
    return rng.choices(list(topics), list(topics.values()))[0](rng)


def wished_story(rng: Random) -> tuple[Exchange, Story]:
    """Return a request that is not held out, with its story."""
    while held_out((wished := story_exchange(rng))[0].user):
        pass
    return wished


def chat(rng: Random, mix: dict[str, int]) -> list[Exchange]:
    """Return the exchanges of one conversation.

    `mix` has the weight of each kind of conversation.
    """
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
    elif way == "kinds":
        result += _burst(rng, _kind, rng.randint(4, 9))
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
    """Return the text of a conversation, exactly as the chat template renders it."""
    text = BOS + (f"{SYSTEM}{system}{END}" if system else "")
    return text + "".join(f"{USER}{e.user}{END}{ASSISTANT}{e.reply}{END}" for e in exchanges)


def document(rng: Random, mix: dict[str, int] = EARLY) -> str:
    """Return one document: a chat, or a story that is not part of a chat."""
    if rng.random() < 0.06:
        return BOS + tell(rng, {}).text + END
    system = choose(rng, SYSTEM_PROMPTS) if rng.random() < 0.1 else ""
    return render(chat(rng, mix), system)


def documents(seed: int, count: int) -> Iterator[str]:
    """Yield `count` documents; the same seed always gives the same text."""
    rng = Random(seed)
    for _ in range(count):
        yield document(rng)


if __name__ == "__main__":
    for text in documents(seed=0, count=int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        sys.stdout.write(text.replace(END, "\n") + "\n")
