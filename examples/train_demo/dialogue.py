"""Generates exchanges that depend on each other: repetition, memory, riddles, follow-ups."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from everyday_tables import LIKES, PET_KINDS, RIDDLES, TOWNS
from grammar import Exchange, choose, polish, typed
from knowledge import qa
from tables import ANIMALS, CAPITALS, OPPOSITES
from words import ANIMALS as KINDS
from words import BOYS, COLOURS, GIRLS, PETS, THINGS, new_name


def repeat(rng: Random) -> Exchange:
    """Ask to say something after the user."""
    name = rng.choice([new_name(rng), rng.choice(GIRLS + BOYS)])
    phrase = choose(rng, rng.choice([
        "[hello|good morning|good night|goodbye|thank you]", "hello " + name, "the {c} {t}", "I like {k}s", "{k}, {k2}, {k3}", "the {k} has a {c} {t}",
        "{n}", "my name is " + name, "the sun is [yellow|warm|up]", "[we|they|you] are friends", "{t}",
    ])).format(c=rng.choice(COLOURS), t=rng.choice(THINGS), k=rng.choice(KINDS), k2=rng.choice(KINDS), k3=rng.choice(KINDS), n=new_name(rng))  # fmt: skip
    phrase = phrase[0].upper() + phrase[1:]
    user = choose(
        rng,
        f"[Repeat after me: {phrase}.|Say: {phrase}.|Please say: {phrase}.|Say this: {phrase}.|Repeat: {phrase}.]",
    )
    return Exchange(user, polish(phrase + "."), "repeat", phrase)


def statement(rng: Random) -> Exchange:
    """Let the user tell a preference, a home or an age; a question about it may follow."""
    way = rng.randrange(5)
    if way == 0:
        pet, name = rng.choice(PET_KINDS), rng.choice([new_name(rng), rng.choice(PETS)])
        first = qa(rng, "statement", "[I have a {p} named {n}.|My {p} is called {n}.|I have a {p}. Its name is {n}.|I've got a {p} called {n}.]",
                   "[{n} is a nice name for a {p}!|That is nice! I like the name {n}.|How nice! Shall I tell you a story about {n} the {p}?]", name, p=pet, n=name)  # fmt: skip
        second = qa(rng, "statement", "[What is the name of my {p}?|What is my {p} called?|What is my pet called?|What pet do I have?|Do you remember my {p}?]",
                    "[Your {p} is called {n}.|You have a {p} named {n}.]", name, p=pet, n=name)  # fmt: skip
    elif way == 1:
        town = rng.choice([new_name(rng), rng.choice(TOWNS), rng.choice(TOWNS)])
        first = qa(
            rng,
            "statement",
            "[I live in {n}.|I am from {n}.|I come from {n}.|My home is {n}.]",
            "[{n} sounds nice!|I hope that you like it in {n}.|Nice! I have never been to {n}, because I live in a file.]",
            town,
            n=town,
        )
        second = qa(
            rng,
            "statement",
            "[Where do I live?|Where am I from?|Where is my home?]",
            "[You told me that it is {n}.|You live in {n}.]",
            town,
            n=town,
        )
    elif way == 2:
        age = str(rng.randint(4, 40))
        first = qa(
            rng,
            "statement",
            "[I am {n} years old.|I'm {n}.|I am {n}.|My age is {n}.]",
            "[{n} is a good age!|Then you are older than I am.|{n} years, how nice!]",
            age,
            n=age,
        )
        second = qa(
            rng,
            "statement",
            "[How old am I?|What is my age?|Do you know how old I am?]",
            "[You are {n} years old.|You are {n}.]",
            age,
            n=age,
        )
    elif way == 3:
        colour = rng.choice(COLOURS)
        first = qa(
            rng,
            "statement",
            "[My favourite colour is {n}.|I like the colour {n}.|I love {n}.]",
            "[{n} is a beautiful colour.|I like {n}, too.|Good choice! {n} is nice.]",
            colour,
            n=colour,
        )
        second = qa(
            rng,
            "statement",
            "[What is my favourite colour?|Which colour do I like?]",
            "[Your favourite colour is {n}.|You like {n}.]",
            colour,
            n=colour,
        )
    else:
        thing = rng.choice(LIKES)
        first = qa(
            rng,
            "statement",
            "[I like {n}.|I love {n}.|I really like {n}.|{n} are great|{n} is great]",
            "[That is nice! What do you like about {n}?|I can understand that. {n} make many people happy.|How nice! Shall I tell you a story?]".replace(
                "{n} make many people happy", "Many people like {n}"
            ),
            thing,
            n=thing,
        )
        second = qa(
            rng,
            "statement",
            "[What do I like?|Do you remember what I like?]",
            "[You like {n}.|You told me that you like {n}.]",
            thing,
            n=thing,
        )
    first.follow = [second] if rng.random() < 0.6 else []
    return first


def riddle(rng: Random) -> Exchange:
    """Ask for a riddle, and then for its answer."""
    text, answer = rng.choice(RIDDLES)
    first = qa(
        rng,
        "riddle",
        "[Tell me a riddle.|Do you know a riddle?|A riddle, please.|Give me a riddle.|Ask me a riddle.|Another riddle]",
        "[{r}|Here is a riddle: {r}]",
        r=text,
    )
    if rng.random() < 0.5:
        reply = "[The answer is {a}.|It is {a}.]"
        first.follow = [
            qa(
                rng,
                "riddle",
                "[I do not know.|I don't know|What is it?|What is the answer?|Tell me.|I give up.|no idea]",
                reply,
                answer,
                a=answer,
            )
        ]
    else:
        first.follow = [
            qa(
                rng,
                "riddle",
                "[{a}|Is it {a}?|{a}?|It is {a}.]",
                "[Yes, that is right! It is {a}.|Correct! Well done.|Right, it is {a}!]",
                a=answer,
            )
        ]
    return first


def chain(rng: Random) -> Exchange:
    """Ask for several capitals, opposites or sounds in a row, the later ones in a few words."""
    way = rng.randrange(3)
    count = rng.choice([1, 1, 2])
    if way == 0:
        picks = rng.sample(list(CAPITALS.items()), count + 1)
        (c, y), rest = picks[0], picks[1:]
        first = qa(
            rng,
            "capital",
            "[What is the capital of {c}?|Capital of {c}?|What's the capital of {c}?]",
            "[The capital of {c} is {y}.|{y}.]",
            y,
            c=c,
            y=y,
        )
        first.follow = [
            qa(
                rng,
                "capital",
                "[And {c}?|And of {c}?|{c}?|What about {c}?|And the capital of {c}?]",
                "[The capital of {c} is {y}.|{y} is the capital of {c}.]",
                y,
                c=c,
                y=y,
            )
            for c, y in rest
        ]
    elif way == 1:
        picks2 = rng.sample(OPPOSITES, count + 1)
        a, b = picks2[0]
        first = qa(
            rng,
            "opposite",
            "[What is the opposite of {a}?|Opposite of {a}?]",
            "[The opposite of {a} is {b}.|{b} is the opposite of {a}.]",
            b,
            a=a,
            b=b,
        )
        first.follow = [
            qa(
                rng,
                "opposite",
                "[And {a}?|And of {a}?|{a}?|What about {a}?]",
                "The opposite of {a} is {b}.",
                b,
                a=a,
                b=b,
            )
            for a, b in picks2[1:]
        ]
    else:
        loud = [(n, v[0]) for n, v in ANIMALS.items() if v[0]]
        picks3 = rng.sample(loud, count + 1)
        n, s = picks3[0]
        first = qa(
            rng,
            "animal sound",
            "[What does a {n} say?|What does the {n} say?]",
            "[A {n} says {s}.|The {n} says {s}.]",
            s,
            n=n,
            s=s,
        )
        first.follow = [
            qa(
                rng,
                "animal sound",
                "[And a {n}?|And the {n}?|What about the {n}?|a {n}?]",
                "[A {n} says {s}.|The {n} says {s}.]",
                s,
                n=n,
                s=s,
            )
            for n, s in picks3[1:]
        ]
    return first


_SHRUGS = (
    ("[Why?|Why not?|Why is that?|How come?|But why?|why tho]", "[I do not know why. I am a very small model.|That I cannot explain. I am a very small model.|I am too small to explain that.]"),
    ("[Tell me more.|More, please.|Go on.|Can you tell me more?|Can you explain that?]", "[That is all I know about it. I am a very small model.|I do not know more than that.|More I do not know, but I can tell you a story.]"),
    ("[Are you sure?|Really?|Is that true?|sure?]", "[I think so, but I am only a very small model.|Yes, I think so.|I am quite sure, but please check it.]"),
    ("[Thanks|Thank you|OK, thank you.|ok|good|Nice.|I see.|Interesting.]", "[You are welcome!|With pleasure!|I am glad to help.|Is there anything else?]"),
)  # fmt: skip


def shrug(rng: Random) -> Exchange:
    """Let the user react to a plain fact with a short question: why, really, tell me more."""
    ask, reply = rng.choice(_SHRUGS)
    return Exchange(typed(rng, choose(rng, ask)), choose(rng, reply), "shrug")
