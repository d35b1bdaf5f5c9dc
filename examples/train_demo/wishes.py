"""Generates users' requests for stories, each with a story that fulfils it."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from string import Formatter

from grammar import Exchange, choose, held_out, polish, typed
from plots import Plot
from stories import ALL_PLOTS, Story, place_for, random_kind, tell, wished_name
from words import (
    ANIMALS,
    BOYS,
    COLOURS,
    FEARS,
    FOODS,
    GIRLS,
    GOALS,
    PEOPLE,
    SKILLS,
    THINGS,
    TRAITS,
    WEATHERS,
    place_phrase,
)

_ASK = (
    "[Tell me|Please tell me|Can you tell me|Could you tell me|Write|Write me|Please write|Can you write|Give me|I want to hear|"
    "I would like to hear|I want|Make up|Invent|Let me hear|Do you know|Could you write|Would you tell me|I'd like|Create|Compose]"
)
_STORY = "a [story|story|story|story|short story|little story|tale|fairy tale|bedtime story|nice story|story for children|funny story|very short story]"
# Relative clauses about a hero ("who ..."), by the first theme of their plot.
_PREDICATES = {
    "losing something": "who [lost|has lost|is looking for|cannot find] a {t}",
    "reaching something high": "who [finds|sees] a {t} in a tree",
    "being brave": "who [is afraid|is not brave|learns to be brave|becomes brave]",
    "getting lost": "who [gets lost|is lost|cannot find the way home|loses the way]",
    "learning something new": "who [never gives up|learns something new|does not give up]",
    "bad weather": "whose house [breaks|falls down|is broken]",
    "friendship": "who [has no friends|is lonely|wants a friend|finds a friend|makes a friend|is new in town]",
    "sharing": "who [does not share|learns to share|keeps everything|will not share]",
    "a treasure": "who [finds a treasure|finds a map|looks for a treasure|finds a {t}]",
    "a birthday": "who [has a birthday|gets a present|gets a {t}]",
    "helping someone": "who [helps a {fk}|saves a {fk}|is caught in a net]",
    "a race": "who [wins a race|runs a race|is very slow|is slow but wins]",
    "honesty": "who [tells a lie|breaks a {t}|tells the truth|makes a mistake]",
    "a garden": "who [plants a seed|has a garden|learns to wait|is impatient]",
    "sleep": "who [cannot sleep|can not fall asleep|is not tired]",
    "a big dream": "who [has a dream|has a big dream|has an idea]",
    "finding a baby animal": "who [finds a baby {fk}|finds a little {fk}|helps a baby {fk}]",
    "magic": "who [finds a magic {t}|has three wishes|has a magic {t}]",
    "music": "who [sings a song|cheers up a {fk}|makes a {fk} laugh]",
    "a mystery": "who [is a detective|solves a mystery|catches a thief]",
    "cooking": "who [cooks|bakes a cake|cooks for a feast]",
    "missing a friend": "who [misses a friend|writes a letter|gets a visit]",
    "winter": "who [works for the winter|gets ready for winter|saves food]",
    "not judging others": "who [meets a big stranger|runs away from a {fk}|is afraid of a {fk}]",
    "a quarrel": "who [quarrels with a friend|fights with a friend|quarrels about a {t}]",
    "a light in the night": "who [saves a boat|lights a lamp|rescues a {fk}]",
    "being yourself": "who [wants to be someone else|wants to be like a {fk}|does not like itself]",
    "a dry summer": "who [looks for water|saves the plants|finds water]",
    "nature": "who [cleans up|picks up rubbish]",
}


@dataclass
class Wish:
    """A request for a story: the slots, perhaps the plot, and the words after `a story about`.

    `themes` are the plots of which each fulfils those words.
    """

    slots: dict[str, str] = field(default_factory=dict)
    plot: Plot | None = None
    about: str = ""
    where: str = ""  # words after `a story`, as in "that happens in the forest"
    themes: tuple[Plot, ...] = ()

    def required(self, story: Story) -> dict[str, str]:
        """Return the slots that the request names, with their values in the story."""
        names = {name for _, name, _, _ in Formatter().parse(self.about) if name}
        names |= {"place"} & self.slots.keys()
        return {name: story.slots[name] for name in sorted(names)}


@dataclass(frozen=True)
class Wished:
    """A request in the words of a user, plain and as typed, and a story that fulfils it."""

    plain: str
    user: str
    story: Story
    required: dict[str, str]  # slots that the story must have, with their values
    themes: tuple[Plot, ...]  # plots of which the story must be one; empty: any plot


def _hero(rng: Random) -> Wish:
    return Wish({"k": random_kind(rng)}, None, "a {k}")


def _hero_trait(rng: Random) -> Wish:
    return Wish({"k": random_kind(rng), "trait": rng.choice(TRAITS)}, None, "a {trait} {k}")


def _hero_friend(rng: Random) -> Wish:
    kind = random_kind(rng)
    while held_out(kind, friend := rng.choice(ANIMALS + PEOPLE), every=20) or friend == kind:
        pass
    return Wish(
        {"k": kind, "fk": friend},
        None,
        rng.choice(["a {k} and a {fk}", "a {k} and a {fk}", "a {k} who meets a {fk}"]),
    )


def _hero_place(rng: Random) -> Wish:
    kind = random_kind(rng)
    place = place_for(rng, kind)
    return Wish({"k": kind, "place": place}, None, "a {k} [|who lives ]" + place_phrase(place))


def _named(rng: Random) -> Wish:
    kind = rng.choice([random_kind(rng), "girl", "boy"])
    name = wished_name(rng, kind)
    if kind in ("girl", "boy") and name in GIRLS + BOYS and rng.random() < 0.5:
        return Wish({"k": "girl" if name in GIRLS else "boy", "N": name}, None, "{N}")
    return Wish(
        {"k": kind, "N": name}, None, "[a {k} named {N}|a {k} called {N}|{N} the {k}|{N}, a {k}]"
    )


def _two_named(rng: Random) -> Wish:
    a, b = rng.sample(["girl", "boy", random_kind(rng), rng.choice(ANIMALS)], 2)
    slots = {"k": a, "N": wished_name(rng, a), "fk": b, "F": wished_name(rng, b)}
    if slots["N"] == slots["F"]:
        return _named(rng)
    return Wish(
        slots,
        None,
        "[a {k} named {N} and a {fk} named {F}|{N} the {k} and {F} the {fk}|{N}, a {k}, and {F}, a {fk}]",
    )


def _place(rng: Random) -> Wish:
    kind = random_kind(rng)
    place = place_for(rng, kind)
    phrase = place_phrase(place)
    if rng.random() < 0.5:
        return Wish({"k": kind, "place": place}, None, rng.choice(["the ", "a "]) + place)
    return Wish(
        {"k": kind, "place": place},
        None,
        "",
        rng.choice(["that happens ", "that takes place ", "set ", ""]) + phrase,
    )


_SLOTS = {
    "thing": "t",
    "food": "food",
    "skill": "skill",
    "fear": "fear",
    "weather": "weather",
    "goal": "goal",
}
_POOLS = {
    "thing": THINGS,
    "food": FOODS,
    "skill": list(SKILLS),
    "fear": list(FEARS),
    "weather": list(WEATHERS),
    "goal": list(GOALS),
}
_ABOUT = {
    "thing": ("a {k} and a {t}|a {k} who has a {t}|a {k} with a {t}", "a {t}|a {t}|a {c} {t}"),
    "food": ("a {k} and {food}|a {k} who likes {food}", "{food}"),
    "skill": ("a {k} who wants to {skill}|a {k} who learns to {skill}|a {k} who cannot {skill}", "learning to {skill}"),
    "fear": ("a {k} who is afraid of {fear}|a {k} that fears {fear}|a {k} who is scared of {fear}", "being afraid of {fear}"),
    "weather": ("a {k} and the {weather}|a {k} in the {weather}", "{weather}|the {weather}|a {wadj} day"),
    "goal": ("a {k} who wants to {goal}|a {k} that wanted to {goal}|a {k} who dreams to {goal}|a {k} who wants to {goal}", "someone who wants to {goal}"),
}  # fmt: skip


def _about_slot(rng: Random, use: str) -> Wish:
    plot = rng.choice([p for p in ALL_PLOTS if p.uses == use])
    value = choose(rng, rng.choice(_POOLS[use]))
    if use == "weather" and "house" in plot.trouble:
        value = rng.choice(["rain", "snow", "wind", "storm"])
    slots = {_SLOTS[use]: value}
    with_hero, without = _ABOUT[use]
    if rng.random() < 0.6:
        slots["k"] = random_kind(rng)
        return Wish(slots, plot, rng.choice(with_hero.split("|")))
    about = rng.choice(without.split("|"))
    if "{c}" in about:
        slots["c"] = rng.choice(COLOURS)
    return Wish(slots, plot, about)


def _theme(rng: Random) -> Wish:
    plot = rng.choice(ALL_PLOTS)
    about = rng.choice(plot.theme.split("|"))
    themes = tuple(p for p in ALL_PLOTS if about in p.theme.split("|"))
    if rng.random() < 0.3:
        return Wish({"k": random_kind(rng)}, plot, "a {k} and " + about, themes=themes)
    return Wish({}, plot, about, themes=themes)


def _predicate(rng: Random) -> Wish:
    plot = rng.choice(ALL_PLOTS)
    predicate = _PREDICATES.get(plot.theme.split("|")[0])
    if predicate is None:
        return _theme(rng)
    slots = {"k": random_kind(rng), "fk": rng.choice(ANIMALS)}
    return Wish(slots, plot, "a {k} " + predicate, themes=(plot,))


_WAYS = {
    _hero: 22, _hero_trait: 7, _hero_friend: 9, _hero_place: 10, _named: 10, _two_named: 4, _place: 5, _theme: 18, _predicate: 15,
    "thing": 8, "food": 2, "skill": 4, "fear": 4, "weather": 3, "goal": 9, None: 24,
}  # fmt: skip


def request(rng: Random) -> Wished:
    """Return a request for a story in the words of a user, and a story that fulfils it."""
    way = rng.choices(list(_WAYS), list(_WAYS.values()))[0]
    if way is None:
        extra = rng.choice(
            [
                "",
                "",
                "",
                ", please",
                " for my [son|daughter|little brother|class|children]",
                " before I sleep",
            ]
        )
        return _typed(rng, f"{_ASK} {_STORY}{extra}.", Wish(), tell(rng, {}))
    wish = _about_slot(rng, way) if isinstance(way, str) else way(rng)
    if wish.about and "place" not in wish.slots and rng.random() < 0.12:
        wish.slots["place"] = place_for(rng, wish.slots.get("k", "girl"))
        wish.about += " " + place_phrase(wish.slots["place"])
    story = tell(rng, wish.slots, wish.plot)
    if wish.where:
        return _typed(rng, f"{_ASK} {_STORY} {wish.where}[.|, please.]", wish, story)
    wish.about = choose(rng, wish.about)
    about = wish.about.format(**story.slots)
    if rng.random() < 0.15:
        start = "[Story about|A story about|A story with|I need a story about|Story:|Once more a story about|A tale of]"
        return _typed(rng, f"{start} {about}", wish, story)
    ask = f"{_ASK} {_STORY} [about|about|about|about|of|with] {about}[.|.|, please.]"
    return _typed(rng, ask, wish, story)


def _typed(rng: Random, text: str, wish: Wish, story: Story) -> Wished:
    text = choose(rng, text)
    if text.startswith(("Can", "Could", "Do", "Would")) and text.endswith("."):
        text = text[:-1] + "?"
    return Wished(polish(text), typed(rng, text), story, wish.required(story), wish.themes)


def story_exchange(rng: Random) -> tuple[Exchange, Story]:
    """Return a request and its story; sometimes the reply begins with an introduction."""
    wished = request(rng)
    intro = (
        ""
        if rng.random() < 0.85
        else choose(rng, "[Sure!|Of course!|Gladly!|Here is a story for you.|With pleasure!] ")
    )
    story = wished.story
    return Exchange(wished.user, intro + story.text, "story", plain=wished.plain), story
