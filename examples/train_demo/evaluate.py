"""Evaluates a model by exact answers to held-out questions, and rounds its weights to 4 bits.

A question is held out when the hash of its wording falls into one bucket of forty; such wordings
never occur in the training text, although the same fact is asked in other words. Each wording is
asked once: a topic with few wordings has few questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from arithmetic import difference, product, story_sum, sum_of
from counting import comparison, counting
from generation import replies
from grammar import Exchange, held_out, wording
from knowledge import animal, calendar, capital, colour, material, opposite, use, what_is
from model import Llama
from refusals import refusal
from tokenizers import Tokenizer
from torch import Tensor

# Topic -> number of replies with the right answer, number of questions, and the failures as
# (question, reply, answer).
Results = dict[str, tuple[int, int, list[tuple[str, str, str]]]]

TOPICS: dict[str, Callable[[Random], Exchange]] = {
    "sums (0 to 20)": sum_of,
    "differences (0 to 20)": difference,
    "products (to 10 times 10) and divisions": product,
    "sums in a little story": story_sum,
    "comparisons": comparison,
    "counting": counting,
    "capitals": capital,
    "opposites": opposite,
    "colours": colour,
    "animals": animal,
    "calendar": calendar,
    "what things are for": use,
    "what things are made of": material,
    "kinds of things": what_is,
    "politely not knowing": refusal,
}

MISTYPED = "all of these with an error in the typing"


def held_out_exchanges(
    topic: Callable[[Random], Exchange], count: int, mistyped: bool = False, seed: int = 7
) -> list[Exchange]:
    """Return up to `count` exchanges of a topic that training has left out, each wording once.

    Capitals and punctuation do not make another wording. With `mistyped`, the questions have a
    typing error, and training has left out their correct form, too.
    """
    rng = Random(seed)
    exchanges: dict[str, Exchange] = {}
    for _ in range(1000 * count):
        exchange = topic(rng)
        if not (exchange.answer and held_out(exchange.plain)):
            continue
        question, plain = wording(exchange.user.removesuffix(" please")), wording(exchange.plain)
        if (question != plain) == mistyped:
            exchanges.setdefault(question, exchange)
        if len(exchanges) == count:
            break
    return list(exchanges.values())


def exact(model: Llama, tokenizer: Tokenizer, count: int = 60) -> Results:
    """Return the results of each topic, and of all topics with typing errors."""
    model.eval()
    by_topic = {name: held_out_exchanges(topic, count) for name, topic in TOPICS.items()}
    by_topic[MISTYPED] = [
        e for topic in TOPICS.values() for e in held_out_exchanges(topic, count // 6, mistyped=True)
    ]
    results: Results = {}
    for name, exchanges in by_topic.items():
        said = replies(model, tokenizer, [e.user for e in exchanges])
        failures = [
            (e.user, reply, e.answer)
            for e, reply in zip(exchanges, said, strict=True)
            if not holds(reply, e.answer)
        ]
        results[name] = (len(exchanges) - len(failures), len(exchanges), failures)
    return results


def holds(reply: str, answer: str) -> bool:
    """Tell whether the reply contains one of the right answers, as whole words."""
    return any(f" {_words(right)} " in f" {_words(reply)} " for right in answer.split("|"))


def _words(text: str) -> str:
    return " ".join(re.sub(r"[.,!?:;\"]", " ", text.lower()).split())


def rounded_to_4_bits(state: dict[str, Tensor], group: int = 32) -> dict[str, Tensor]:
    """Round each matrix to 4 bits: symmetric, one scale for `group` values along a row."""
    result = {}
    for name, weight in state.items():
        if weight.ndim < 2:
            result[name] = weight
            continue
        blocks = weight.float().reshape(weight.shape[0], -1, group)
        scale = blocks.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 7
        result[name] = ((blocks / scale).round().clamp(-7, 7) * scale).reshape(weight.shape)
    return result
