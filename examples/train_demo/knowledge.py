"""Generates simple questions about the world from tables."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

import re
from random import Random

from everyday_tables import NOUNS
from grammar import Exchange, choose, listed, polish, typed, wording
from tables import (
    ANIMALS,
    BODY,
    CAPITALS,
    COLOURS_OF,
    DAYS,
    KINDS_OF_THING,
    MATERIALS,
    MONTHS,
    OPPOSITES,
    PLURALS,
    SEASONS,
    SHAPES,
    USES,
    WHY,
)


def qa(rng: Random, kind: str, ask: str, reply: str, answer: str = "", **values: str) -> Exchange:
    """Build an exchange from alternatives; `values` fill the fields of question and reply."""
    plain = polish(choose(rng, ask).format(**values))
    user = typed(rng, plain)
    return Exchange(user, polish(choose(rng, reply).format(**values)), kind, answer, plain=plain)


def described(exchange: Exchange, thing: str) -> Exchange:
    """Return an exchange like `What is a saw?` with all right answers: kind, use, definition."""
    if wording(exchange.plain) == f"what is {wording(thing)}":
        name = re.sub("^an? ", "", thing)
        facts = [group for group, members in KINDS_OF_THING.items() if thing in members]
        facts += [table[key] for table, key in ((USES, name), (NOUNS, thing)) if key in table]
        facts += [ANIMALS[name][-1]] if name in ANIMALS else []
        exchange.answer = "|".join(facts)
    return exchange


def capital(rng: Random) -> Exchange:
    """Ask for the capital of a country, or for the country of a capital."""
    country, city = rng.choice(list(CAPITALS.items()))
    if rng.random() < 0.65:
        ask = (
            "[What is the capital of {c}?|Capital of {c}?|Which city is the capital of {c}?|Do you know the capital of {c}?|"
            "Tell me the capital of {c}.|What's the capital of {c}?|And the capital of {c}?|Name the capital of {c}.|"
            "What is the capital city of {c}?|What city is the capital of {c}?|I need the capital of {c}.]"
        )
        return qa(
            rng,
            "capital",
            ask,
            "[The capital of {c} is {y}.|{y} is the capital of {c}.|{y}.]",
            city,
            c=country,
            y=city,
        )
    ask = "[Where is {y}?|In which country is {y}?|What country is {y} in?|{y} is the capital of which country?|Where is {y} located?|Which country is {y} in?|In what country is {y}?|To which country does {y} belong?]"
    return qa(
        rng,
        "capital",
        ask,
        "[{y} is in {c}.|{y} is the capital of {c}.]",
        country,
        c=country,
        y=city,
    )


def opposite(rng: Random) -> Exchange:
    """Ask for the opposite of a word."""
    a, b = rng.choice(OPPOSITES)
    if rng.random() < 0.5:
        a, b = b, a
    ask = (
        "[What is the opposite of {a}?|Opposite of {a}?|What's the opposite of {a}?|Tell me the opposite of {a}.|"
        "Which word is the opposite of {a}?|Give me the opposite of {a}.|The opposite of {a} is what?|What word is the opposite of {a}?|Name the opposite of {a}.]"
    )
    return qa(
        rng,
        "opposite",
        ask,
        "[The opposite of {a} is {b}.|{b} is the opposite of {a}.|The opposite is {b}.]",
        b,
        a=a,
        b=b,
    )


def colour(rng: Random) -> Exchange:
    """Ask for the colour of a thing."""
    thing, value = rng.choice(list(COLOURS_OF.items()))
    ask = "[What colour is {t}?|What color is {t}?|Which colour does {t} have?|Tell me the colour of {t}.|What is the colour of {t}?|What is the color of {t}?|Tell me what colour {t} is.|Do you know the colour of {t}?|What colour does {t} have?]"
    replies = "[{T} is {v}.|It is {v}.|{T} is usually {v}.]"
    return qa(rng, "colour", ask, replies, value, t=thing, T=thing, v=value)


def animal(rng: Random) -> Exchange:
    """Ask what an animal says or eats, where it lives, or the name of its young."""
    name, (sound, home, food, baby, fact) = rng.choice(list(ANIMALS.items()))
    options = [
        ("home", "[Where does a {n} live?|Where do {ns} live?|What is the home of a {n}?|Where can I find a {n}?|Where is the home of a {n}?|Where do you find {ns}?|In what place does a {n} live?]",
         "[A {n} lives {x}.|{ns} live {x}.|It lives {x}.]", home),
        ("food", "[What does a {n} eat?|What do {ns} eat?|What do {ns} like to eat?|What is the food of a {n}?|What food does a {n} eat?|What does a {n} like to eat?]",
         "[A {n} eats {x}.|{ns} eat {x}.|It eats {x}.]", food),
        ("fact", "[Tell me about {ns}.|Tell me something about the {n}.|What do you know about {ns}?|What is a {n}?|"
         "Tell me a fact about {ns}.]", "[{x}|{x}|{x} {ns} eat {food}.|{x} {ns} live {home}.]", fact),
    ]  # fmt: skip
    if sound:
        ask = "[What does a {n} say?|What sound does a {n} make?|What does the {n} say?|What noise does a {n} make?|How does a {n} sound?|Which sound does a {n} make?]"
        options.append(("sound", ask, "[A {n} says {x}.|The {n} says {x}.|It says {x}.]", sound))
    if baby:
        ask = "[What is a baby {n} called?|What do you call a young {n}?|What is the name for a baby {n}?|What are baby {ns} called?|What is a young {n} called?|How do you call a baby {n}?]"
        options.append(
            (
                "baby",
                ask,
                "[A baby {n} is called a {x}.|A young {n} is a {x}.|It is called a {x}.]",
                baby,
            )
        )
    kind, ask, reply, x = rng.choice(options)
    plural = PLURALS.get(name, name + "s")
    answer = "" if kind == "fact" else x
    return qa(
        rng, f"animal {kind}", ask, reply, answer, n=name, ns=plural, x=x, food=food, home=home
    )


def _how_many(parts: str, thing: str) -> str:
    """Return wordings of the question how many parts a span of time has."""
    return (
        f"[How many {parts} are in a {thing}?|How many {parts} does a {thing} have?|How many {parts} are there in a {thing}?|"
        f"How many {parts} has a {thing}?|A {thing} has how many {parts}?|How many {parts} make a {thing}?|"
        f"Tell me how many {parts} a {thing} has.]"
    )


def calendar(rng: Random) -> Exchange:
    """Ask about days, months and seasons of the calendar."""
    names, unit = rng.choice([(DAYS, "day"), (MONTHS, "month"), (MONTHS, "month")])
    i = rng.randrange(len(names))
    now, after, before = names[i], names[(i + 1) % len(names)], names[i - 1]
    way = rng.randrange(6)
    if way < 2:
        ask = "[Which {u} comes after {n}?|What {u} comes after {n}?|What comes after {n}?|What is the {u} after {n}?|What {u} follows {n}?|Which {u} follows {n}?|The {u} after {n}?|Tell me the {u} after {n}.|What comes next after {n}?|What comes right after {n}?]"
        return qa(
            rng,
            "calendar",
            ask,
            "[After {n} comes {a}.|{a} comes after {n}.|{a}.]",
            after,
            u=unit,
            n=now,
            a=after,
        )
    if way < 4:
        ask = "[Which {u} comes before {n}?|What {u} comes before {n}?|What comes before {n}?|What is the {u} before {n}?|The {u} before {n}?|Tell me the {u} before {n}.|Which {u} is before {n}?|What comes right before {n}?]"
        return qa(
            rng,
            "calendar",
            ask,
            "[Before {n} comes {a}.|{a} comes before {n}.|{a}.]",
            before,
            u=unit,
            n=now,
            a=before,
        )
    if way == 4:
        question, reply, answer = rng.choice(SEASONS)
        return qa(rng, "calendar", question, reply, answer)
    question, count, all_names = rng.choice(
        [
            (_how_many("days", "week"), "[A week has seven days.|There are seven days in a week.]", "seven|7"),
            (_how_many("months", "year"), "[A year has twelve months.|There are twelve months in a year.]", "twelve|12"),
            (_how_many("seasons", "year"), "[There are four seasons.|A year has four seasons: spring, summer, autumn and winter.]", "four|4"),
            ("[What are the days of the week?|Name the days of the week.|List the days of the week.|Tell me the days of the week.]", "The days of the week are " + listed(DAYS) + ".", listed(DAYS)),
            ("[What are the months of the year?|Name the months.|List the months.|Tell me the twelve months.]", "The months are " + listed(MONTHS) + ".", listed(MONTHS)),
            ("[What are the seasons?|Name the four seasons.|List the seasons.|Tell me the seasons.]", "The seasons are spring, summer, autumn and winter.", "spring, summer, autumn and winter"),
            (_how_many("hours", "day"), "[A day has 24 hours.|There are 24 hours in a day.]", "24"),
            (_how_many("minutes", "hour"), "[An hour has 60 minutes.|There are 60 minutes in an hour.]", "60"),
            (_how_many("seconds", "minute"), "[A minute has 60 seconds.|There are 60 seconds in a minute.]", "60"),
            (_how_many("days", "year"), "[A year has 365 days.|There are 365 days in a year, and 366 in a leap year.]", "365"),
        ]
    )  # fmt: skip
    return qa(rng, "calendar", question, count, all_names)


def shape(rng: Random) -> Exchange:
    """Ask about geometric shapes, such as the number of sides."""
    question, reply, answer = rng.choice(SHAPES)
    return qa(rng, "shape", question, reply, answer)


def body(rng: Random) -> Exchange:
    """Ask what a part of the body is for."""
    part, verb, count = rng.choice(BODY)
    if count and rng.random() < 0.35:
        ask = "[How many {p} do we have?|How many {p} does a person have?|How many {p} do people have?|How many {p} do you need to count on a human?]"
        return qa(
            rng, "body", ask, "[We have {c} {p}.|A person has {c} {p}.]", count, p=part, c=count
        )
    ask = "[What do we use our {p} for?|What are {p} for?|What do we do with our {p}?|What can you do with your {p}?|Why do we have {p}?]"
    if not part.endswith("s") and part not in ("feet", "teeth"):
        ask = "[What do we use our {p} for?|What is the {p} for?|What do we do with our {p}?|Why do we have a {p}?]"
    return qa(
        rng, "body", ask, "[We use our {p} to {v}.|With our {p} we {v}.]", verb, p=part, v=verb
    )


def use(rng: Random) -> Exchange:
    """Ask what a thing is used for."""
    thing, verb = rng.choice(list(USES.items()))
    if rng.random() < 0.35:
        ask = (
            "[What do you need to {v}?|What do I need to {v}?|What can I use to {v}?|Which thing do you use to {v}?|What do you use to {v}?|"
            "What do people use to {v}?|What should I use to {v}?|Which thing do I need to {v}?|I want to {v}. What do I need?]"
        )
        return qa(
            rng,
            "use",
            ask,
            "[You need a {t} to {v}.|You can use a {t}.|A {t} is good for that.]",
            "|".join(t for t, v in USES.items() if v == verb),
            t=thing,
            v=verb,
        )
    ask = (
        "[What do you use a {t} for?|What is a {t} for?|What can I do with a {t}?|What is a {t} used for?|Why do people have a {t}?|"
        "What do we do with a {t}?|What can you do with a {t}?|What do people use a {t} for?|What do I need a {t} for?|What is a {t} good for?|"
        "What is a {t}?]"
    )
    exchange = qa(
        rng,
        "use",
        ask,
        "[You use a {t} to {v}.|A {t} is used to {v}.|With a {t} you can {v}.]",
        verb,
        t=thing,
        v=verb,
    )
    return described(exchange, f"a {thing}")


def material(rng: Random) -> Exchange:
    """Ask what a thing is made of."""
    thing, stuff = rng.choice(list(MATERIALS.items()))
    ask = "[What is {t} made of?|What is {t} made from?|Of what is {t} made?|What do you make {t} of?|What do you need to make {t}?|What do I need to make {t}?|From what is {t} made?|Tell me what {t} is made of.|What do people make {t} from?|Which material is {t} made of?]"
    return qa(
        rng,
        "material",
        ask,
        "[{t} is made of {s}.|It is made of {s}.|{t} is usually made of {s}.]",
        stuff,
        t=thing,
        s=stuff,
    )


def what_is(rng: Random) -> Exchange:
    """Ask which kind of thing a word is."""
    group, members = rng.choice(list(KINDS_OF_THING.items()))
    word = rng.choice(members)
    if rng.random() < 0.5:
        ask = "[What kind of thing is {w}?|What kind of thing is {w}?|What is {w}?|Is {w} {a} {g} or an animal?|What sort of thing is {w}?|What type of thing is {w}?|Which kind of thing is {w}?|Tell me what kind of thing {w} is.|What would you call {w}?]"
        if group in ("animal", "bird", "insect"):
            ask = "[What kind of thing is {w}?|What is {w}?|What sort of thing is {w}?|What type of thing is {w}?|Which kind of thing is {w}?|Tell me what kind of thing {w} is.|What would you call {w}?]"
        replies = "[{w} is a {g}.|It is a {g}.]"
        return described(qa(rng, "kind", ask, replies, group, w=word, g=group, a="a"), word)
    if rng.random() < 0.4:
        return qa(
            rng,
            "kind",
            "[Is {w} a {g}?|Is {w} a {g}?|Is {w} really a {g}?|Would you call {w} a {g}?]",
            "[Yes, {w} is a {g}.|Yes, it is.|Yes, it is a {g}.]",
            "Yes",
            w=word,
            g=group,
        )
    other = rng.choice(
        [
            g
            for g in KINDS_OF_THING
            if word not in KINDS_OF_THING[g]
            and {g, group} not in ({"bird", "animal"}, {"insect", "animal"}, {"tool", "toy"})
        ]
    )
    return qa(
        rng,
        "kind",
        "[Is {w} a {o}?|Is {w} a {o}?|Is {w} really a {o}?|Would you call {w} a {o}?]",
        "[No, {w} is a {g}.|No, it is a {g}.|No, {w} is not a {o}. It is a {g}.]",
        "No",
        w=word,
        o=other,
        g=group,
    )


def why(rng: Random) -> Exchange:
    """Ask a why or how question with a fixed explanation."""
    question, reply = rng.choice(WHY)
    return qa(rng, "why", question, reply)


TOPICS = {
    capital: 5.0, opposite: 4.5, colour: 4.0, animal: 8.0, calendar: 6.0, shape: 1.0, body: 1.5, use: 6.5, material: 5.0,
    what_is: 8.0, why: 2.5,
}  # fmt: skip


def fact(rng: Random) -> Exchange:
    """Return one exchange about the world."""
    return rng.choices(list(TOPICS), list(TOPICS.values()))[0](rng)
