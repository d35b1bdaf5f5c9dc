"""Stop strings do not depend on how a text was cut."""

from __future__ import annotations

import random

import pytest

from wherry.runtime.stop_strings import StopStrings


def run(stops, chunks):
    made = StopStrings(stops)
    given = [made.push(c) for c in chunks]
    return "".join([*given, made.flush()]), made.stopped


def reference(stops, text):
    """Character by character: the first end of a stop string, the longest that ends there."""
    for end in range(len(text) + 1):
        begins = [end - len(s) for s in stops if s and text[:end].endswith(s)]
        if begins:
            return text[: min(begins)], True
    return text, False


@pytest.mark.parametrize(
    ("stops", "text", "expected"),
    [
        (["END"], "abcENDdef", "abc"),
        (["END"], "abcEN", "abcEN"),
        (["aab"], "aaab", "a"),
        (["abcd", "c"], "abcd", "ab"),
        (["bc", "abc"], "xabc", "x"),
        (["\n\n"], "a\n\nb", "a"),
        ([""], "abc", "abc"),
        ([], "abc", "abc"),
    ],
)
def test_cases(stops, text, expected):
    for chunks in ([text], list(text)):
        assert run(stops, chunks)[0] == expected


def test_random_texts_and_cuts():
    rng = random.Random(4)
    for _ in range(3000):
        stops = ["".join(rng.choices("ab", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]
        text = "".join(rng.choices("abc", k=rng.randrange(14)))
        chunks, at = [], 0
        while at < len(text):
            step = rng.randint(1, 4)
            chunks.append(text[at : at + step])
            at += step
        assert run(stops, chunks) == reference(stops, text), (stops, chunks)


def test_only_a_possible_beginning_is_held():
    made = StopStrings(["STOP"])
    assert made.push("abcST") == "abc"
    assert made.push("x") == "STx"
    assert made.push("S") == ""
    assert made.push("TOP and more") == ""
    assert made.stopped
    assert made.push("more") == "" == made.flush()
