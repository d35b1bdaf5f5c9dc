"""Evaluates lists: the number of items, no repetition, and all items of the requested group."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from counting import word
from evaluate import Results
from generation import Sampling, replies
from grammar import choose, polish
from lists import GROUPS, LIST_ASK, SINGULAR
from model import Llama
from tables import KINDS_OF_THING
from tokenizers import Tokenizer

RIGHT = "right in all of this"
_CHECKS = (
    "as many items as asked for",
    "each item once",
    "each item of the kind",
    "no garbled item",
)
_MARK = re.compile(r"^(?:\d+\.|-)\s*", re.MULTILINE)


@dataclass(frozen=True)
class ListWish:
    """A request for a list of `count` members of a group."""

    user: str
    group: str
    count: int


def list_wishes(seed: int = 7) -> list[ListWish]:
    """Return a request for each group and each number of items that a list may have."""
    rng = Random(seed)
    wishes = []
    for group, members in GROUPS.items():
        for count in range(2, min(6, len(members.split())) + 1):
            ask = choose(rng, LIST_ASK).format(n=word(count), g=group)
            wishes.append(ListWish(polish(ask), group, count))
    return wishes


def members(group: str) -> set[str]:
    """Return all words of the tables that belong to a group, in lower case."""
    narrower = [g for g in GROUPS if g == group or g.endswith(" " + group)]
    words = {w.lower() for g in narrower for w in GROUPS[g].split()}
    kinds = KINDS_OF_THING.get(SINGULAR.get(group, group), [])
    return words | {re.sub("^(an?|the) ", "", w).lower() for w in kinds}


KNOWN = frozenset().union(*(members(group) for group in GROUPS))


def items(reply: str, group: str) -> list[str]:
    """Return the items of a list in lower case; it is a sentence, or numbered or dashed lines."""
    text = reply.strip().rstrip(".").lower()
    if _MARK.search(text):
        return [_MARK.sub("", line).strip() for line in text.splitlines()]
    text = re.sub(rf"^(here are )?[a-z0-9-]+ {re.escape(group.lower())}( are|:) ", "", text)
    return [item.strip() for item in re.split(r", | and ", text)]


def verdicts(wish: ListWish, reply: str) -> dict[str, bool]:
    """Return for each check, and for all together, whether a reply passes it."""
    listed = items(reply, wish.group)
    right = (
        len(listed) == wish.count,
        len(set(listed)) == len(listed),
        set(listed) <= members(wish.group),
        set(listed) <= KNOWN,
    )
    return {**dict(zip(_CHECKS, right, strict=True)), RIGHT: all(right)}


def lists(model: Llama, tokenizer: Tokenizer, sampling: Sampling | None = None) -> Results:
    """Return for each check the number of lists that pass, the number of lists, and failures."""
    model.eval()
    wishes = list_wishes()
    said = replies(model, tokenizer, [w.user for w in wishes], 120, sampling)
    results: Results = {name: (0, 0, []) for name in (*_CHECKS, RIGHT)}
    for wish, reply in zip(wishes, said, strict=True):
        for name, right in verdicts(wish, reply).items():
            passed, total, failures = results[name]
            failed = [] if right else [(wish.user, reply, str(wish.count))]
            results[name] = (passed + right, total + 1, failures + failed)
    return results
