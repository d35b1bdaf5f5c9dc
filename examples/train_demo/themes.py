"""Which plot a text tells, from the beats of all plots."""

from __future__ import annotations

import re
from functools import cache

from plots import Plot
from stories import ALL_PLOTS

_PARTS = re.compile(r"(\[|\]|\||\{\w+\})")
_SIGNS = {"[": "(?:", "]": ")", "|": "|"}


@cache
def pattern(beat: str) -> re.Pattern[str]:
    """Return what matches each text that a beat can become: fields are a few words of any kind."""
    pieces = [
        _SIGNS.get(part, r"[^.!?]{1,60}?" if part[0] == "{" else _literal(part))
        for part in _PARTS.split(beat)
        if part
    ]
    return re.compile("".join(pieces), re.IGNORECASE)


def _literal(text: str) -> str:
    """Let an article be `a` or `an`, and spaces be any number."""
    return re.sub(r"\b[Aa](?=\\ |$)", "an?", re.escape(text)).replace(r"\ ", " +")


def told(text: str) -> tuple[Plot | None, float]:
    """Return the plot of which the text has the largest share of beats, and the share.

    Below a half of its beats it is no plot.
    """
    shares = {
        plot: sum(bool(pattern(beat).search(text)) for beat in plot.beats) / len(plot.beats)
        for plot in ALL_PLOTS
    }
    best = max(shares, key=lambda plot: shares[plot])
    return (best if shares[best] >= 0.5 else None), shares[best]
