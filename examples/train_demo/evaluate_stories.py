"""Evaluates whether a story has all that was requested: hero, name, place, thing, theme."""

from __future__ import annotations

import re
from random import Random

from evaluate import Results
from generation import Sampling, replies
from grammar import held_out, wording
from model import Llama
from themes import plot_of
from tokenizers import Tokenizer
from wishes import Wished, request
from words import WEATHERS

EVERYTHING = "everything that was asked for"
ANY = "a story with a plot and an end"
# What people type first.
PLAIN = ("Tell me a story.", "tell me a story", "A story, please.", "Can you tell me a story?")
_NAMES = {
    "k": "hero",
    "N": "name of the hero",
    "fk": "friend",
    "F": "name of the friend",
    "place": "place",
    "t": "thing",
    "c": "colour of the thing",
    "food": "food",
    "skill": "skill",
    "fear": "fear",
    "goal": "deed",
    "weather": "weather",
    "wadj": "weather",
    "trait": "trait of the hero",
}
LIMIT = 400  # maximum number of tokens; the longest story of the rules has about 260


def held_out_wishes(count: int, seed: int = 7) -> list[Wished]:
    """Return `count` different requests for stories, without typing errors, for the evaluation."""
    rng = Random(seed)
    wishes: dict[str, Wished] = {}
    while len(wishes) < count:
        wished = request(rng)
        asks = wished.required or wished.themes
        if asks and held_out(wished.user) and wording(wished.user) == wording(wished.plain):
            wishes.setdefault(wording(wished.user), wished)
    return list(wishes.values())


def has(text: str, slot: str, value: str) -> bool:
    """Tell whether the story names the requested value; for the weather `rain`, also `rainy`."""
    values = {value}
    for weather, (adjective, _, _) in WEATHERS.items():
        if slot in ("weather", "wadj") and value in (weather, adjective):
            values = {weather, adjective}
    return any(re.search(rf"\b{re.escape(v)}(s|es)?\b", text, re.IGNORECASE) for v in values)


def verdicts(wished: Wished, text: str) -> dict[str, bool]:
    """Return for each part of a request, and for the whole, whether the text fulfils it."""
    parts = {_NAMES[slot]: has(text, slot, value) for slot, value in wished.required.items()}
    if wished.themes:
        parts["theme"] = plot_of(text)[0] in wished.themes
    return {**parts, EVERYTHING: all(parts.values())}


def stories(
    model: Llama, tokenizer: Tokenizer, sampling: Sampling | None = None, count: int = 120
) -> Results:
    """Return for each part of a request the number of stories with it, of stories, and failures."""
    model.eval()
    wishes = held_out_wishes(count)
    texts = replies(model, tokenizer, [w.user for w in wishes], LIMIT, sampling)
    results: Results = {name: (0, 0, []) for name in (*dict.fromkeys(_NAMES.values()), "theme")}
    results[EVERYTHING] = (0, 0, [])
    for wished, text in zip(wishes, texts, strict=True):
        for name, right in verdicts(wished, text).items():
            kept, total, failures = results[name]
            failed = [] if right else [(wished.user, text, wished.story.plot.theme)]
            results[name] = (kept + right, total + 1, failures + failed)
    return results


def is_story(text: str) -> bool:
    """Tell whether a text tells at least half of a plot, and ends with a sentence."""
    return plot_of(text)[0] is not None and text.rstrip().endswith((".", "!", "?", '"'))


def plain_stories(
    model: Llama, tokenizer: Tokenizer, sampling: Sampling | None = None, count: int = 20
) -> Results:
    """Return for each request that leaves all open how many of `count` replies are a story."""
    model.eval()
    results: Results = {}
    for user in PLAIN:
        said = replies(model, tokenizer, [user] * count, LIMIT, sampling)
        failures = [(user, text, ANY) for text in said if not is_story(text)]
        results[user] = (count - len(failures), count, failures)
    return results
