"""Exact answers to held-out questions, and rounding to 4 bits.

A question is held out when the hash of its wording falls into one bucket of forty; such wordings
never occur in the training text, although the same fact is asked in other words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random

import torch
from arithmetic import difference, product, story_sum, sum_of
from corpus import ASSISTANT, BOS, END, PAD, USER
from counting import comparison, counting
from grammar import Exchange, held_out
from knowledge import animal, calendar, capital, colour, material, opposite, use, what_is
from model import Llama
from refusals import refusal
from tokenizers import Tokenizer
from torch import Tensor

# Topic -> replies that hold the answer, questions asked, and each failure: question, reply, answer.
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


def held_out_exchanges(
    topic: Callable[[Random], Exchange], count: int, seed: int = 7
) -> list[Exchange]:
    """Return up to count different exchanges of a topic which training has left out."""
    rng = Random(seed)
    found: dict[str, Exchange] = {}
    for _ in range(400 * count):
        exchange = topic(rng)
        if exchange.answer and held_out(exchange.user):
            found.setdefault(exchange.user, exchange)
        if len(found) == count:
            break
    return list(found.values())


@torch.no_grad()
def greedy(model: Llama, tokenizer: Tokenizer, users: list[str], limit: int = 80) -> list[str]:
    """Return the most likely reply to each user turn; prompts of equal length run together."""
    end = tokenizer.token_to_id(END)
    prompts = [
        tokenizer.encode(f"{BOS}{USER}{u}{END}{ASSISTANT}", add_special_tokens=False).ids
        for u in users
    ]
    groups: dict[int, list[int]] = defaultdict(list)
    for i, ids in enumerate(prompts):
        groups[len(ids)].append(i)
    replies = [""] * len(users)
    for length, members in groups.items():
        ids = torch.tensor([prompts[i] for i in members])
        done = torch.zeros(len(members), dtype=torch.bool)
        for _ in range(limit):
            following = model(ids)[:, -1].argmax(-1)
            done |= following == end
            if done.all():
                break
            following[done] = tokenizer.token_to_id(PAD)
            ids = torch.cat([ids, following[:, None]], dim=1)
        for i, row in zip(members, ids[:, length:].tolist(), strict=True):
            cut = row[: row.index(end)] if end in row else row
            replies[i] = tokenizer.decode(cut, skip_special_tokens=True)
    return replies


def exact(model: Llama, tokenizer: Tokenizer, count: int = 60) -> Results:
    """Return for each topic: replies that hold the answer, questions, failures."""
    model.eval()
    results: Results = {}
    for name, topic in TOPICS.items():
        exchanges = held_out_exchanges(topic, count)
        replies = greedy(model, tokenizer, [e.user for e in exchanges])
        failures = [
            (e.user, reply, e.answer)
            for e, reply in zip(exchanges, replies, strict=True)
            if not _holds(reply, e.answer)
        ]
        results[name] = (len(exchanges) - len(failures), len(exchanges), failures)
    return results


def _holds(reply: str, answer: str) -> bool:
    words = (
        f" {reply.lower()} ".replace(".", " ").replace(",", " ").replace("!", " ").replace(":", " ")
    )
    wanted = answer.lower().replace(",", " ").rstrip(".")
    return f" {wanted} " in words


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
