"""Evaluates whether hero and friend of a story keep their names and their pronouns."""

from __future__ import annotations

import re
from collections import defaultdict

from evaluate import Results
from evaluate_stories import LIMIT, held_out_wishes
from generation import Sampling, replies
from model import Llama
from stories import ALL_PLOTS, CHARACTER, OPENINGS, known_gender
from themes import pattern
from tokenizers import Tokenizer
from words import SKILLS, TRAITS

GENDER, FITS, NAMES, EVERYTHING = (
    "one gender for hero and friend",
    "the gender that the name has",
    "names that stay, and differ",
    "right in all of this",
)
# What the fields of a beat say: about whom, and what.
_FIELDS = {"N": "hero_name", "F": "friend_name", "h": "hero_kind", "fk": "friend_kind"}
_FIELDS |= {name: "hero_pronoun" for name in ("he", "him", "his", "He", "His")}
_FIELDS |= {"f" + name: "friend_pronoun" for name in ("he", "him", "his")}
_FIELDS |= {"F" + name: "friend_pronoun" for name in ("He", "His")}
_MATCHING = {
    "name": r"(?-i:[A-Z])\w*",
    "kind": r"[^.!?]{1,60}?",
    "pronoun": r"\b(?:he|him|his|she|her|it|its)",
}
_SLIPS = "[" + "|".join(SKILLS.values()) + "]"
_PRONOUN = re.compile(r"\b(?:(he|him|his|himself)|she|her|hers|herself)\b", re.IGNORECASE)
# A name inside a sentence; the rest are capitals of other kinds.
_NAME = re.compile(r"(?<=[a-z,] )(?!I\b|North\b|Pole\b)[A-Z]\w*")


def _capturing(field: str, number: int) -> str:
    if field not in _FIELDS:
        return _MATCHING["kind"]
    said = _FIELDS[field]
    return f"(?P<{said}_{number}>{_MATCHING[said.split('_')[1]]})"


def _is_she(pronoun: str) -> bool | None:
    word = pronoun.lower()
    return None if word.startswith("it") else word.startswith("s") or word == "her"


def said_of(text: str) -> tuple[dict[str, set[str]], set[bool | None]]:
    """Return what a story says of each character, and the genders of pronouns beyond its beats.

    The keys are `hero_name`, `friend_pronoun` and so on. The second set has the pronouns of
    sentences that no beat of the story's plot has, of which nobody can tell whom they mean.
    """
    plot = max(ALL_PLOTS, key=lambda plot: sum(bool(pattern(b).search(text)) for b in plot.beats))
    said: dict[str, set[str]] = defaultdict(set)
    covered = [False] * len(text)
    for beat in (*filter(None, OPENINGS + CHARACTER), *plot.beats):
        match = pattern(beat.replace("{slip}", _SLIPS), _capturing).search(text)
        if match is None:
            continue
        covered[match.start() : match.end()] = [True] * (match.end() - match.start())
        for group, value in match.groupdict().items():
            if value is not None:
                said[group.rsplit("_", 1)[0]].add(value)
    rest = [m for m in _PRONOUN.finditer(text) if not covered[m.start()]]
    return said, {m[1] is None for m in rest}


def _known(kinds: set[str], name: str) -> set[bool]:
    """Return the genders that the kinds, perhaps with a trait before them, and the name have."""
    plain = {re.sub(rf"^({'|'.join(TRAITS)}) ", "", kind.lower()) for kind in kinds or {""}}
    return {known for kind in plain if (known := known_gender(kind, name)) is not None}


def verdicts(text: str) -> dict[str, bool]:
    """Return for each rule about a story's characters whether the text keeps it."""
    said, others = said_of(text)
    roles = ("hero", "friend")
    names = {who: said[f"{who}_name"] for who in roles}
    genders = {who: {_is_she(word) for word in said[f"{who}_pronoun"]} for who in roles}
    known = {who: {k for n in names[who] for k in _known(said[f"{who}_kind"], n)} for who in roles}
    # A pronoun of which nobody can tell whom it means may have the gender of either.
    possible = {
        gender
        for who in roles
        for gender in (genders[who] | known[who] or ({True, False} if names[who] else set()))
    }
    named = names["hero"] | names["friend"]
    parts = {
        GENDER: all(len(values) <= 1 for values in genders.values())
        and None not in possible
        and (others <= possible or len(others | possible) <= 1),
        FITS: all(len(genders[who] | known[who]) <= 1 for who in roles if known[who]),
        NAMES: all(len(values) <= 1 for values in names.values())
        and not names["hero"] & names["friend"]
        and len(named | set(_NAME.findall(text))) <= 2,
    }
    return {**parts, EVERYTHING: all(parts.values())}


def characters(
    model: Llama, tokenizer: Tokenizer, sampling: Sampling | None = None, count: int = 300
) -> Results:
    """Return for each rule the number of stories that keep it, of all, and the failures."""
    model.eval()
    wishes = [wished.user for wished in held_out_wishes(count)]
    texts = replies(model, tokenizer, wishes, LIMIT, sampling)
    judged = [verdicts(text) for text in texts]
    results: Results = {}
    for rule in (GENDER, FITS, NAMES, EVERYTHING):
        failures = [
            (u, t, "") for u, t, v in zip(wishes, texts, judged, strict=True) if not v[rule]
        ]
        results[rule] = (count - len(failures), count, failures)
    return results
