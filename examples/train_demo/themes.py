"""Finds the plot that a text tells, by comparing it with the beats of all plots."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from plots import Plot
from stories import ALL_PLOTS

_PARTS = re.compile(r"(\[|\]|\||\{\w+\})")
_SIGNS = {"[": "(?:", "]": ")", "|": "|"}


def few_words(field: str, number: int) -> str:
    """Return an expression that matches a few words of any kind."""
    return r"[^.!?]{1,60}?"


@cache
def pattern(beat: str, matching: Callable[[str, int], str] = few_words) -> re.Pattern[str]:
    """Return an expression that matches each text of a beat.

    `matching` has what a field matches, from its name and its number in the beat.
    """
    pieces = [
        _SIGNS.get(part, matching(part[1:-1], i) if part[0] == "{" else _literal(part))
        for i, part in enumerate(_PARTS.split(beat))
        if part
    ]
    return re.compile("".join(pieces), re.IGNORECASE)


def _literal(text: str) -> str:
    """Return an expression for a literal text, with any article and any number of spaces."""
    return re.sub(r"\b[Aa](?=\\ |$)", "an?", re.escape(text)).replace(r"\ ", " +")


def plot_of(text: str) -> tuple[Plot | None, float]:
    """Return the plot with the largest share of its beats in the text, and this share.

    The plot is None if the share is below a half.
    """
    shares = {
        plot: sum(bool(pattern(beat).search(text)) for beat in plot.beats) / len(plot.beats)
        for plot in ALL_PLOTS
    }
    best = max(shares, key=lambda plot: shares[plot])
    return (best if shares[best] >= 0.5 else None), shares[best]
