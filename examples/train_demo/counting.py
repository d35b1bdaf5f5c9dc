"""Generates exchanges about counting, neighbouring numbers, and comparisons."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from grammar import Exchange
from knowledge import qa

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def word(n: int) -> str:
    """Return n (0 to 99) in words."""
    if n <= 20:
        return WORDS[n]
    return TENS[n // 10] + ("-" + WORDS[n % 10] if n % 10 else "")


def comparison(rng: Random) -> Exchange:
    """Ask which of two numbers is bigger or smaller."""
    a, b = rng.sample(range(21), 2)
    show = word if rng.random() < 0.3 else str
    values = {"a": show(a), "b": show(b), "x": show(max(a, b)), "y": show(min(a, b))}
    way = rng.randrange(3)
    if way == 0:
        ask = "[Which is bigger, {a} or {b}?|Which number is bigger, {a} or {b}?|What is more, {a} or {b}?|Which is larger, {a} or {b}?|Which is greater: {a} or {b}?]"
        return qa(
            rng,
            "comparison",
            ask,
            "[{x} is bigger than {y}.|{x} is more than {y}.]",
            f"{values['x']} is",
            **values,
        )
    if way == 1:
        ask = "[Which is smaller, {a} or {b}?|Which number is smaller, {a} or {b}?|What is less, {a} or {b}?]"
        return qa(
            rng,
            "comparison",
            ask,
            "[{y} is smaller than {x}.|{y} is less than {x}.]",
            f"{values['y']} is",
            **values,
        )
    if a > b:
        return qa(
            rng,
            "comparison",
            "[Is {a} bigger than {b}?|Is {a} more than {b}?|Is {b} smaller than {a}?]",
            "[Yes, {a} is bigger than {b}.|Yes, {b} is smaller than {a}.]",
            "yes",
            **values,
        )
    return qa(
        rng,
        "comparison",
        "[Is {a} bigger than {b}?|Is {a} more than {b}?|Is {b} smaller than {a}?]",
        "[No, {a} is smaller than {b}.|No, {b} is bigger than {a}.]",
        "no",
        **values,
    )


def counting(rng: Random) -> Exchange:
    """Ask to count up, down, from a to b, by twos, fives or tens, or for a neighbour of a number."""
    way = rng.randrange(8)
    if way == 0:
        n = rng.randint(3, 20)
        ask = "[Count to {n}.|Please count to {n}.|Can you count to {n}?|Count from 1 to {n}.|Count up to {n}.]"
        spelled = rng.random() < 0.3
        numbers = [word(i) if spelled else str(i) for i in range(1, n + 1)]
        return qa(
            rng,
            "counting",
            ask,
            "{r}.",
            ", ".join(numbers),
            n=word(n) if spelled else str(n),
            r=", ".join(numbers),
        )
    if way == 1:
        n = rng.randint(3, 20)
        ask = "[Count down from {n}.|Count backwards from {n}.|Please count down from {n}.|Can you count backwards from {n}?|Count from {n} to 1.]"
        text = ", ".join(str(i) for i in range(n, 0, -1))
        return qa(rng, "counting", ask, "{r}.", text, n=str(n), r=text)
    if way == 2:
        a, b = sorted(rng.sample(range(31), 2))
        b = min(b, a + 14)
        text = ", ".join(str(i) for i in range(a, b + 1))
        return qa(
            rng,
            "counting",
            "[Count from {a} to {b}.|Please count from {a} to {b}.|Can you count from {a} to {b}?]",
            "{r}.",
            text,
            a=str(a),
            b=str(b),
            r=text,
        )
    if way == 3:
        step, name = rng.choice([(2, "twos"), (5, "fives"), (10, "tens"), (3, "threes")])
        count = rng.choice([5, 10])
        text = ", ".join(str(step * i) for i in range(1, count + 1))
        ask = "[Count by {s} to {n}.|Count in {s} up to {n}.|Can you count by {s} to {n}?|Please count by {s} up to {n}.]"
        return qa(rng, "counting", ask, "{r}.", text, s=name, n=str(step * count), r=text)
    n = rng.randint(0, 30) if rng.random() < 0.7 else rng.randint(0, 98)
    show = word if rng.random() < 0.3 else str
    if way in (4, 5):
        ask = "[Which number comes after {n}?|What number comes after {n}?|What comes after {n}?|What is the next number after {n}?]"
        return qa(
            rng,
            "counting",
            ask,
            "[{r}.|After {n} comes {r}.|{r} comes after {n}.]",
            show(n + 1),
            n=show(n),
            r=show(n + 1),
        )
    if way == 6:
        ask = (
            "[Which number comes before {n}?|What number comes before {n}?|What comes before {n}?]"
        )
        return qa(
            rng,
            "counting",
            ask,
            "[{r}.|Before {n} comes {r}.|{r} comes before {n}.]",
            show(n),
            n=show(n + 1),
            r=show(n),
        )
    n = rng.randint(0, 20)
    if rng.random() < 0.5:
        ask = "[Is {n} even or odd?|Is {n} an even number?|Is the number {n} odd or even?]"
        kind = "even" if n % 2 == 0 else "odd"
        return qa(
            rng,
            "counting",
            "[Is {n} even or odd?|Is {n} odd or even?|Is the number {n} even or odd?]",
            "{n} is {k}.",
            kind,
            n=str(n),
            k=kind,
        )
    a = rng.randint(1, 10)
    way = rng.randrange(2)
    if way:
        return qa(
            rng,
            "counting",
            "[What is double {n}?|What is twice {n}?|Double {n}.]",
            "[Twice {n} is {r}.|Double {n} is {r}.]",
            str(2 * a),
            n=str(a),
            r=str(2 * a),
        )
    return qa(
        rng,
        "counting",
        "[What is half of {n}?|Half of {n}?]",
        "[Half of {n} is {r}.|{r}.]",
        str(a),
        n=str(2 * a),
        r=str(a),
    )
