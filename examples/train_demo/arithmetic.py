"""Generates exchanges about sums, differences, products and divisions of small numbers."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from counting import comparison, counting, word
from grammar import Exchange
from knowledge import qa


def _number(rng: Random, limit: int = 20) -> int:
    return rng.randint(0, 10) if rng.random() < 0.4 else rng.randint(0, limit)


def _result(number: str) -> str:
    """Return what a reply must contain: the number as a result, not as a part of the question."""
    return f"= {number}|is {number}"


_SUMS = (
    "[What is {a} + {b}?|What is {a} plus {b}?|{a} + {b}|{a} + {b} = ?|How much is {a} plus {b}?|{a} plus {b}?|What's {a} + {b}?|"
    "Add {a} and {b}.|What is the sum of {a} and {b}?|How much is {a} + {b}?|Can you add {a} and {b}?|{a}+{b}|what is {a}+{b}?|Calculate {a} + {b}.]"
)
_DIFFERENCES = (
    "[What is {a} - {b}?|What is {a} minus {b}?|{a} - {b}|{a} - {b} = ?|How much is {a} minus {b}?|{a} minus {b}?|What's {a} - {b}?|"
    "Take {b} away from {a}.|Subtract {b} from {a}.|How much is {a} - {b}?|{a}-{b}|what is {a}-{b}?|Calculate {a} - {b}.]"
)


def sum_of(rng: Random) -> Exchange:
    """Ask for a sum of two numbers from 0 to 20, in digits or in words."""
    a, b = _number(rng), _number(rng)
    if rng.random() < 0.35:
        ask = "[What is {a} plus {b}?|How much is {a} plus {b}?|{a} plus {b}?|Add {a} and {b}.|What is the sum of {a} and {b}?|And {a} plus {b}?]"
        values = {"a": word(a), "b": word(b), "c": word(a + b)}
        return qa(
            rng,
            "sum",
            ask,
            "[{a} plus {b} is {c}.|{a} plus {b} is {c}.|That is {c}.]",
            _result(values["c"]),
            **values,
        )
    values = {"a": str(a), "b": str(b), "c": str(a + b)}
    return qa(
        rng,
        "sum",
        _SUMS,
        "[{a} + {b} = {c}.|{a} plus {b} is {c}.|{a} + {b} = {c}.|That is {c}.]",
        _result(values["c"]),
        **values,
    )


def difference(rng: Random) -> Exchange:
    """Ask for a difference which is not negative."""
    a, b = sorted((_number(rng), _number(rng)), reverse=True)
    if rng.random() < 0.35:
        ask = "[What is {a} minus {b}?|How much is {a} minus {b}?|{a} minus {b}?|Take {b} away from {a}.|Subtract {b} from {a}.|And {a} minus {b}?]"
        values = {"a": word(a), "b": word(b), "c": word(a - b)}
        return qa(
            rng,
            "difference",
            ask,
            "[{a} minus {b} is {c}.|{a} minus {b} is {c}.|That is {c}.]",
            _result(values["c"]),
            **values,
        )
    values = {"a": str(a), "b": str(b), "c": str(a - b)}
    return qa(
        rng,
        "difference",
        _DIFFERENCES,
        "[{a} - {b} = {c}.|{a} minus {b} is {c}.|{a} - {b} = {c}.|That is {c}.]",
        _result(values["c"]),
        **values,
    )


def story_sum(rng: Random) -> Exchange:
    """Ask for a sum that is told as a story."""
    who = rng.choice("I|Tom|Mia|Ben|Anna|Sam|Lily|Leo".split("|"))
    have = "have" if who == "I" else "has"
    thing = rng.choice("apples|balls|pears|coins|books|nuts|eggs|cookies|shells|pens".split("|"))
    a, b = rng.randint(1, 10), rng.randint(1, 10)
    back = "you have" if who == "I" else f"{who} has"
    if rng.random() < 0.5:
        ask = "{w} {h} {a} {t} and [gets|finds|buys] {b} more. How many {t} {do} {w} have?"
        if who == "I":
            ask = "I have {a} {t} and [get|find|buy] {b} more. How many {t} do I have?"
        values = {
            "a": str(a),
            "b": str(b),
            "w": who,
            "h": have,
            "t": thing,
            "do": "does",
            "k": back,
            "c": str(a + b),
        }
        return qa(
            rng,
            "story sum",
            ask,
            "[{a} + {b} = {c}, so {k} {c} {t}.|{k} {c} {t}, because {a} + {b} = {c}.]",
            _result(str(a + b)),
            **values,
        )
    a, b = a + b, b
    ask = "{w} {h} {a} {t} and [gives away|loses|eats] {b}. How many [{t} |]are left?"
    if who == "I":
        ask = "I have {a} {t} and [give away|lose] {b}. How many [{t} |]are left?"
    values = {"a": str(a), "b": str(b), "w": who, "h": have, "t": thing, "k": back, "c": str(a - b)}
    return qa(
        rng,
        "story sum",
        ask,
        "[{a} - {b} = {c}, so {k} {c} {t} left.|{k} {c} {t} left, because {a} - {b} = {c}.]",
        _result(str(a - b)),
        **values,
    )


def product(rng: Random) -> Exchange:
    """Ask for a product of two numbers up to ten, or for a division without a remainder."""
    a, b = rng.randint(0, 10), rng.randint(1, 10)
    values = {"a": str(a), "b": str(b), "c": str(a * b)}
    if rng.random() < 0.5:
        ask = "[What is {a} times {b}?|{a} times {b}|{a} * {b}|What is {a} * {b}?|{a} x {b}|What is {a} x {b}?|How much is {a} times {b}?|Multiply {a} and {b}.|What's {a} times {b}?|And {a} times {b}?]"
        return qa(
            rng,
            "product",
            ask,
            "[{a} times {b} is {c}.|{a} * {b} = {c}.]",
            _result(values["c"]),
            **values,
        )
    ask = "[What is {c} divided by {b}?|{c} divided by {b}|{c} / {b}|What is {c} / {b}?|How much is {c} divided by {b}?|Divide {c} by {b}.]"
    return qa(
        rng,
        "division",
        ask,
        "[{c} divided by {b} is {a}.|{c} / {b} = {a}.]",
        _result(values["a"]),
        **values,
    )


def below_zero(rng: Random) -> Exchange:
    """Ask for a difference which would be negative."""
    b, a = rng.sample(range(21), 2)
    a, b = min(a, b), max(a, b)
    reply = "[The result is below zero, and I only know numbers from zero up.|That is less than zero. I only know numbers from zero up.]"
    return qa(
        rng,
        "below zero",
        "[What is {a} - {b}?|What is {a} minus {b}?|{a} - {b}|{a} minus {b}|How much is {a} minus {b}?]",
        reply,
        "zero",
        a=str(a),
        b=str(b),
    )


TOPICS = {
    sum_of: 6.0,
    difference: 4.0,
    product: 3.0,
    story_sum: 2.0,
    comparison: 4.0,
    counting: 4.0,
    below_zero: 0.3,
}


def calculation(rng: Random) -> Exchange:
    """Return one exchange about numbers."""
    return rng.choices(list(TOPICS), list(TOPICS.values()))[0](rng)
