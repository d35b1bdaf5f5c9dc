"""Simple questions about the world, built from tables."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from grammar import Exchange, choose, listed, polish, typed
from tables import (
    ANIMALS,
    BODY,
    CAPITALS,
    COLOURS_OF,
    DAYS,
    KINDS_OF_THING,
    MADE_OF,
    MONTHS,
    OPPOSITES,
    PLURALS,
    SEASONS,
    SHAPES,
    USES,
    WHY,
)


def qa(rng: Random, kind: str, ask: str, reply: str, answer: str = "", **values: str) -> Exchange:
    """Build an exchange from alternatives; the values fill both sides."""
    user = typed(rng, choose(rng, ask).format(**values))
    return Exchange(user, polish(choose(rng, reply).format(**values)), kind, answer)


def capital(rng: Random) -> Exchange:
    """Ask for the capital of a country, or for the country of a capital."""
    country, city = rng.choice(list(CAPITALS.items()))
    if rng.random() < 0.75:
        ask = (
            "[What is the capital of {c}?|Capital of {c}?|Which city is the capital of {c}?|Do you know the capital of {c}?|"
            "Tell me the capital of {c}.|What's the capital of {c}?|And the capital of {c}?|Name the capital of {c}.|"
            "What is the capital city of {c}?]"
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
    ask = "[Where is {y}?|In which country is {y}?|What country is {y} in?|{y} is the capital of which country?|Where is {y} located?]"
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
    """Ask for an opposite."""
    a, b = rng.choice(OPPOSITES)
    if rng.random() < 0.5:
        a, b = b, a
    ask = (
        "[What is the opposite of {a}?|Opposite of {a}?|What's the opposite of {a}?|Tell me the opposite of {a}.|"
        "Which word is the opposite of {a}?|Give me the opposite of {a}.|The opposite of {a} is what?]"
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
    ask = "[What colour is {t}?|What color is {t}?|Which colour does {t} have?|Tell me the colour of {t}.|What is the colour of {t}?]"
    replies = "[{T} is {v}.|It is {v}.|{T} is usually {v}.]"
    return qa(rng, "colour", ask, replies, value.split(" ")[0], t=thing, T=thing, v=value)


def animal(rng: Random) -> Exchange:
    """Ask what an animal says, eats, where it lives or what its young are called."""
    name, (sound, home, food, baby, fact) = rng.choice(list(ANIMALS.items()))
    options = [
        ("home", "[Where does a {n} live?|Where do {ns} live?|What is the home of a {n}?|Where can I find a {n}?]",
         "[A {n} lives {x}.|{ns} live {x}.|It lives {x}.]", home),
        ("food", "[What does a {n} eat?|What do {ns} eat?|What do {ns} like to eat?|What is the food of a {n}?]",
         "[A {n} eats {x}.|{ns} eat {x}.|It eats {x}.]", food),
        ("fact", "[Tell me about {ns}.|Tell me something about the {n}.|What do you know about {ns}?|What is a {n}?|"
         "Tell me a fact about {ns}.]", "[{x}|{x}|{x} {ns} eat {food}.|{x} {ns} live {home}.]", fact),
    ]  # fmt: skip
    if sound:
        ask = "[What does a {n} say?|What sound does a {n} make?|What does the {n} say?|What noise does a {n} make?|How does a {n} sound?]"
        options.append(("sound", ask, "[A {n} says {x}.|The {n} says {x}.|It says {x}.]", sound))
    if baby:
        ask = "[What is a baby {n} called?|What do you call a young {n}?|What is the name for a baby {n}?|What are baby {ns} called?]"
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


def calendar(rng: Random) -> Exchange:
    """Ask about days, months and seasons."""
    names, unit = rng.choice([(DAYS, "day"), (MONTHS, "month"), (MONTHS, "month")])
    i = rng.randrange(len(names))
    now, after, before = names[i], names[(i + 1) % len(names)], names[i - 1]
    way = rng.randrange(6)
    if way < 2:
        ask = "[Which {u} comes after {n}?|What {u} comes after {n}?|What comes after {n}?|What is the {u} after {n}?|What {u} follows {n}?]"
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
        ask = "[Which {u} comes before {n}?|What {u} comes before {n}?|What comes before {n}?|What is the {u} before {n}?]"
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
            ("[How many days are in a week?|How many days does a week have?|How many days are there in a week?]", "[A week has seven days.|There are seven days in a week.]", "seven"),
            ("[How many months are in a year?|How many months does a year have?|How many months are there in a year?]", "[A year has twelve months.|There are twelve months in a year.]", "twelve"),
            ("[How many seasons are there?|How many seasons does a year have?]", "[There are four seasons.|A year has four seasons: spring, summer, autumn and winter.]", "four"),
            ("[What are the days of the week?|Name the days of the week.|List the days of the week.|Tell me the days of the week.]", "The days of the week are " + listed(DAYS) + ".", DAYS[0]),
            ("[What are the months of the year?|Name the months.|List the months.|Tell me the twelve months.]", "The months are " + listed(MONTHS) + ".", MONTHS[0]),
            ("[What are the seasons?|Name the four seasons.|List the seasons.|Tell me the seasons.]", "The seasons are spring, summer, autumn and winter.", "spring"),
            ("[How many hours are in a day?|How many hours does a day have?]", "[A day has 24 hours.|There are 24 hours in a day.]", "24"),
            ("[How many minutes are in an hour?|How many minutes does an hour have?]", "[An hour has 60 minutes.|There are 60 minutes in an hour.]", "60"),
            ("[How many seconds are in a minute?|How many seconds does a minute have?]", "[A minute has 60 seconds.|There are 60 seconds in a minute.]", "60"),
            ("[How many days are in a year?|How many days does a year have?]", "[A year has 365 days.|There are 365 days in a year, and 366 in a leap year.]", "365"),
        ]
    )  # fmt: skip
    return qa(rng, "calendar", question, count, all_names)


def shape(rng: Random) -> Exchange:
    """Ask about shapes."""
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
    if rng.random() < 0.2:
        ask = "[What do you need to {v}?|What do I need to {v}?|What can I use to {v}?|Which thing do you use to {v}?]"
        return qa(
            rng,
            "use",
            ask,
            "[You need a {t} to {v}.|You can use a {t}.|A {t} is good for that.]",
            thing,
            t=thing,
            v=verb,
        )
    ask = (
        "[What do you use a {t} for?|What is a {t} for?|What can I do with a {t}?|What is a {t} used for?|Why do people have a {t}?|"
        "What do we do with a {t}?|What is a {t}?]"
    )
    return qa(
        rng,
        "use",
        ask,
        "[You use a {t} to {v}.|A {t} is used to {v}.|With a {t} you can {v}.]",
        verb,
        t=thing,
        v=verb,
    )


def material(rng: Random) -> Exchange:
    """Ask what a thing is made of."""
    thing, stuff = rng.choice(list(MADE_OF.items()))
    ask = "[What is {t} made of?|What is {t} made from?|Of what is {t} made?|What do you make {t} of?|What do you need to make {t}?]"
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
        ask = "[What kind of thing is {w}?|What is {w}?|Is {w} {a} {g} or an animal?|What sort of thing is {w}?]"
        if group in ("animal", "bird", "insect"):
            ask = "[What kind of thing is {w}?|What is {w}?|What sort of thing is {w}?]"
        return qa(rng, "kind", ask, "[{w} is a {g}.|It is a {g}.]", group, w=word, g=group, a="a")
    if rng.random() < 0.5:
        return qa(
            rng,
            "kind",
            "[Is {w} a {g}?|Is {w} really a {g}?]",
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
        "Is {w} a {o}?",
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
    capital: 5.0, opposite: 5.0, colour: 3.0, animal: 7.0, calendar: 3.5, shape: 1.0, body: 1.5, use: 3.0, material: 2.5,
    what_is: 3.0, why: 3.0,
}  # fmt: skip


def fact(rng: Random) -> Exchange:
    """Return one exchange about the world."""
    return rng.choices(list(TOPICS), list(TOPICS.values()))[0](rng)
