"""Stop strings do not depend on how a text was cut."""

from __future__ import annotations

import random
import time

import pytest

from wherry.runtime.text.stop_strings import StopAutomaton, StopStrings

from . import text_streams as streams


def run(stops, chunks):
    made = StopStrings(StopAutomaton(stops))
    given = [made.push(c) for c in chunks]
    return "".join([*given, made.flush()]), made.found


def reference(stops, text):
    """Character by character: the first end of a stop string, the longest that ends there."""
    for end in range(len(text) + 1):
        begins = [end - len(s) for s in stops if s and text[:end].endswith(s)]
        if begins:
            return text[: min(begins)], text[min(begins) : end]
    return text, None


@pytest.mark.parametrize(("stops", "text", "expected"), streams.STOPS)
def test_cases(stops, text, expected):
    for chunks in ([text], list(text)):
        assert run(stops, chunks)[0] == expected


def test_random_texts_and_cuts():
    for stops, text, chunks in streams.random_stops(3000):
        assert run(stops, chunks) == reference(stops, text), (stops, chunks)


def test_only_a_possible_beginning_is_held():
    made = StopStrings(StopAutomaton(["STOP"]))
    assert made.push("abcST") == "abc"
    assert made.push("x") == "STx"
    assert made.push("S") == ""
    assert made.push("TOP and more") == ""
    assert made.stopped
    assert made.push("more") == "" == made.flush()


# The worst for a scan: every string is near, none comes.
@pytest.mark.parametrize(
    ("stops", "text"),
    [
        (["a" * 1000 + chr(0x100 + i) for i in range(1024)], "a" * 20_000),
        (["ab" * 499 + chr(0x100 + i) for i in range(1024)], "ab" * 10_000),
        (["a" * i + "b" for i in range(1024)], "a" * 20_000),
        (["".join(random.Random(i).choices("ab", k=1000)) for i in range(1024)], "abba" * 5000),
    ],
)
def test_time_does_not_grow_with_the_number_of_strings(stops, text):
    def seconds(stops):
        automaton = StopAutomaton(stops)
        choices = [StopStrings(automaton) for _ in range(2)]
        start = time.process_time()
        for at in range(0, len(text), 4):
            for made in choices:
                made.push(text[at : at + 4])
        return time.process_time() - start

    several = seconds(stops)
    one = seconds([stops[-1]])
    assert several < 20 * one + 0.5  # a scan: more than a thousand times
