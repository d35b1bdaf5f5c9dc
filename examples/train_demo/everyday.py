"""Generates everyday exchanges: definitions, trades, sizes, abilities and spelling."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from dialogue import chain, repeat, riddle, statement
from everyday_tables import (
    COMMON,
    FLIES,
    LAYS,
    NOT_FLIES,
    NOT_LAYS,
    NOUNS,
    SIZES,
    SPEEDS,
    SWIMS,
    TRADES,
)
from grammar import Exchange
from knowledge import qa
from tables import PLURALS


def noun(rng: Random) -> Exchange:
    """Ask what a thing is."""
    thing, reply = rng.choice(list(NOUNS.items()))
    ask = "[What is {x}?|What is {x}?|What's {x}?|Explain {x}.|What does {x} mean?|Can you explain what {x} is?|Do you know what {x} is?|Tell me what {x} is.|Tell me about {x}.]"
    return qa(rng, "noun", ask, reply, x=thing)


def trade(rng: Random) -> Exchange:
    """Ask what a person with a trade does, or which trade does something."""
    who, deed = rng.choice(list(TRADES.items()))
    if rng.random() < 0.35:
        return qa(
            rng,
            "trade",
            "[Who {d}?|What do you call someone who {d}?|Which person {d}?]",
            "[A {w} {d}.|A {w}.|That is a {w}.]",
            who,
            w=who,
            d=deed,
        )
    return qa(
        rng,
        "trade",
        "[What does a {w} do?|What is a {w}?|What is the job of a {w}?|What does a {w} do all day?]",
        "A {w} {d}.",
        deed,
        w=who,
        d=deed,
    )


def size(rng: Random) -> Exchange:
    """Compare two things by size or speed."""
    row, more, less = rng.choice([(SIZES, "bigger", "smaller"), (SPEEDS, "faster", "slower")])
    i, j = sorted(rng.sample(range(len(row)), 2))
    a, b = rng.sample([row[i], row[j]], 2)
    values = {"a": a, "b": b, "big": row[j], "small": row[i], "more": more, "less": less}
    way = rng.randrange(3)
    if way == 0:
        return qa(
            rng,
            "size",
            "[Which is {more}, {a} or {b}?|What is {more}, {a} or {b}?|Who is {more}, {a} or {b}?|What is {more}: {a} or {b}?]",
            "{big} is {more} than {small}.",
            f"{row[j]} is",
            **values,
        )
    if way == 1:
        return qa(
            rng,
            "size",
            "[Which is {less}, {a} or {b}?|What is {less}, {a} or {b}?]",
            "{small} is {less} than {big}.",
            f"{row[i]} is",
            **values,
        )
    if a == row[j]:
        return qa(
            rng, "size", "Is {a} {more} than {b}?", "Yes, {a} is {more} than {b}.", "yes", **values
        )
    return qa(rng, "size", "Is {a} {more} than {b}?", "No, {a} is {less} than {b}.", "no", **values)


def ability(rng: Random) -> Exchange:
    """Ask whether an animal can fly or swim, or lays eggs."""
    way = rng.randrange(3)
    yes = rng.random() < 0.5
    if way == 0:
        n = rng.choice(FLIES if yes else NOT_FLIES)
        ask, reply = (
            "[Can a {n} fly?|Can {ns} fly?|Does a {n} fly?|Do {ns} fly?]",
            "[Yes, a {n} can fly.|Yes, {ns} can fly.]"
            if yes
            else "[No, a {n} cannot fly.|No, {ns} cannot fly.]",
        )
    elif way == 1:
        n = rng.choice(LAYS if yes else NOT_LAYS)
        ask, reply = (
            "[Does a {n} lay eggs?|Do {ns} lay eggs?]",
            "[Yes, a {n} lays eggs.|Yes, {ns} lay eggs.]"
            if yes
            else "[No, a {n} does not lay eggs.|No, {ns} do not lay eggs.]",
        )
    else:
        yes = True
        n = rng.choice(SWIMS)
        ask, reply = (
            "[Can a {n} swim?|Can {ns} swim?|Does a {n} swim?]",
            "[Yes, a {n} can swim.|Yes, {ns} swim very well.]",
        )
    return qa(rng, "ability", ask, reply, "yes" if yes else "no", n=n, ns=PLURALS.get(n, n + "s"))


def spelling(rng: Random) -> Exchange:
    """Ask for the letters of a short word."""
    word = rng.choice(COMMON)
    way = rng.randrange(4)
    if way < 2:
        spelled = "-".join(word.upper())
        return qa(
            rng,
            "spelling",
            "[How do you spell {w}?|Spell {w}.|Spell the word {w}.|How is {w} spelled?|Can you spell {w}?]",
            "[{s}.|{w} is spelled {s}.]",
            spelled,
            w=word,
            s=spelled,
        )
    if way == 2:
        return qa(
            rng,
            "spelling",
            "[What is the first letter of {w}?|With which letter does {w} begin?|Which letter does {w} start with?]",
            "[The first letter of {w} is {s}.|{w} begins with {s}.]",
            word[0].upper(),
            w=word,
            s=word[0].upper(),
        )
    return qa(
        rng,
        "spelling",
        "[How many letters does {w} have?|How many letters are in {w}?]",
        "[{w} has {s} letters.|The word {w} has {s} letters.]",
        str(len(word)),
        w=word,
        s=str(len(word)),
    )


TOPICS = {
    noun: 5.0,
    trade: 2.0,
    size: 2.5,
    ability: 1.5,
    spelling: 2.0,
    repeat: 2.5,
    statement: 3.0,
    riddle: 1.5,
    chain: 2.5,
}


def everyday(rng: Random) -> Exchange:
    """Return one everyday exchange."""
    return rng.choices(list(TOPICS), list(TOPICS.values()))[0](rng)
