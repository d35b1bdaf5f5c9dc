"""Generates stories: fills the slots by chance or by the user's request, then tells a plot."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from adventures import ADVENTURES
from grammar import choose, held_out, polish, write
from plots import PLOTS, Plot
from words import (
    ANIMALS,
    BOYS,
    COLOURS,
    FEARS,
    FOODS,
    GIRLS,
    GOALS,
    HE_PETS,
    HE_SHORT,
    HELPERS,
    PEOPLE,
    PLACES,
    RARE,
    SHE_PETS,
    SHE_SHORT,
    SKILLS,
    THINGS,
    TRAITS,
    WEATHERS,
    WONDERS,
    new_name,
    place_phrase,
)

ALL_PLOTS = PLOTS + ADVENTURES
_SHE = frozenset(
    "queen|princess|witch|fairy|mermaid|grandmother|hen|cow|goose|girl|doll|nurse|sister|old woman".split(
        "|"
    )
)
_HE = frozenset(
    "king|prince|wizard|rooster|grandfather|boy|postman|fisherman|brother|policeman|old man|snowman|bull".split(
        "|"
    )
)

OPENINGS = (
    "[Once upon a time|Once|Long ago|A long time ago|In a time long past], there [was|lived] a {h} named {N} {p}.",
    "[Once upon a time|Once|Long ago], {p}, there [was|lived] a {h} [named|called] {N}.",
    "{N} was a {h} who lived {p}.",
    "There was once a {h} [named|called] {N}. {He} lived {p}.",
    "{P} lived a {h} [named|called] {N}.",
    "This is the story of {N}, a {h} who lived {p}.",
)
CHARACTER = (
    "[Everybody there knew {him}|All the neighbours liked {him}|{He} was known to everybody].",
    "[In the mornings {he} liked to sing|{He} loved to eat {food}|{He} liked to lie in the sun].",
    "",
    "",
)
CLOSINGS = (
    "",
    "",
    "",
    "The end.",
    "[And they lived happily ever after|And they stayed friends for ever].",
)
_HER, _HIS = frozenset(GIRLS + SHE_PETS), frozenset(BOYS + HE_PETS)


@dataclass
class Story:
    """A generated story, with the slots and the plot that questions about it need."""

    text: str
    plot: Plot
    slots: dict[str, str]

    def fill(self, text: str) -> str:
        """Fill the fields of a text from the slots of the story."""
        return polish(text.format(**self.slots))


def known_gender(kind: str, name: str) -> bool | None:
    """Tell whether a hero is a she, by its kind or else its name; None if no list has them."""
    for she, he, said in ((_SHE, _HE, kind), (_HER, _HIS, name)):
        if said in she | he:
            return said in she
    return None


def is_she(kind: str, name: str) -> bool:
    """Tell whether a hero is a she; invented names that end in a, e or i are hers."""
    known = known_gender(kind, name)
    return name.endswith(("a", "e", "i")) if known is None else known


def _pronouns(kind: str, name: str) -> tuple[str, str, str]:
    return ("she", "her", "her") if is_she(kind, name) else ("he", "him", "his")


def random_kind(rng: Random) -> str:
    """Return a kind of hero: an animal, a child, a person, something wonderful or something odd."""
    if rng.random() < 0.03:
        return new_name(rng).lower()
    group = rng.choices([ANIMALS, ["girl", "boy"], PEOPLE, WONDERS, RARE], [6, 2.5, 2, 2, 1.5])[0]
    return rng.choice(group)


def wished_name(rng: Random, kind: str) -> str:
    """Return a name that a user gives a hero of this kind; one name in five is invented."""
    if rng.random() < 0.2:
        return new_name(rng)
    if kind in _SHE:
        return rng.choice(GIRLS)
    if kind in _HE:
        return rng.choice(BOYS)
    return rng.choice(rng.choice([SHE_PETS, HE_PETS, GIRLS, BOYS]))


def random_name(rng: Random, kind: str, she: bool) -> str:
    """Return a name for a hero or friend whom the user has given none."""
    if kind in _SHE | _HE:
        return rng.choice((SHE_SHORT if kind in _SHE else HE_SHORT)[0])
    people, pets = SHE_SHORT if she else HE_SHORT
    return rng.choice(people if rng.random() < 0.3 else pets)


def tell(rng: Random, wishes: dict[str, str], plot: Plot | None = None) -> Story:
    """Generate a story of a plot, or of a random plot.

    The wishes may fix k, N, place, fk, F, t, c, food, skill, fear, goal, weather and trait.
    """
    plot = plot or rng.choice(ALL_PLOTS)
    slots = {
        "t": rng.choice(THINGS),
        "c": rng.choice(COLOURS),
        "food": rng.choice(FOODS),
        "skill": rng.choice(list(SKILLS)),
        "fear": rng.choice(list(FEARS)),
        "goal": choose(rng, rng.choice(GOALS)),
        "weather": rng.choice(
            ["rain", "snow", "wind", "storm"] if "house" in plot.trouble else list(WEATHERS)
        ),
        "trait": rng.choice(TRAITS),
        "a": rng.choice(HELPERS),
        "morning": rng.choice(["morning", "day", "afternoon"]),
        "day": rng.choice(["day", "morning", "afternoon"]),
        **wishes,
    }
    kind = slots.setdefault("k", random_kind(rng))
    name = slots.setdefault("N", random_name(rng, kind, rng.random() < 0.5))
    place = slots.setdefault("place", place_for(rng, kind))
    friend = slots.setdefault("fk", rng.choice([a for a in ANIMALS + PEOPLE if a != kind]))
    if "F" not in slots:
        she = is_she(kind, name) == (rng.random() < 0.65)
        slots["F"] = next(n for n in iter(lambda: random_name(rng, friend, she), "") if n != name)
    slots["he"], slots["him"], slots["his"] = _pronouns(kind, name)
    slots["fhe"], slots["fhim"], slots["fhis"] = _pronouns(friend, slots["F"])
    for pronoun in ("he", "his", "fhe", "fhis"):
        slots[pronoun.replace("h", "H", 1)] = slots[pronoun].capitalize()
        slots[pronoun.replace("f", "F", 1).replace("h", "H", 1)] = slots[pronoun].capitalize()
    slots["p"] = place_phrase(place)
    slots["place_the"] = "the " + place
    slots["P"] = slots["p"].capitalize()
    slots["hide"] = rng.choice(PLACES[place][1].split("|"))
    slots["wadj"], slots["did"], slots["fun"] = WEATHERS[slots["weather"]]
    slots["slip"] = SKILLS[slots["skill"]].format(**slots)
    slots["truth"] = FEARS[slots["fear"]]
    trait = slots["trait"] + " " if "trait" in wishes or rng.random() < 0.8 else ""
    slots["h"] = trait + kind
    parts = [rng.choice(OPENINGS), rng.choice(CHARACTER), *plot.beats, rng.choice(CLOSINGS)]
    text = " ".join(write(rng, part, **slots) for part in parts if part)
    return Story(text, plot, slots)


def place_for(rng: Random, kind: str) -> str:
    while True:
        place = rng.choice(list(PLACES))
        if place == "moon" and kind not in ("robot", "astronaut", "rocket", "star", "dragon"):
            continue
        if not held_out(kind, place, every=20):
            return place
