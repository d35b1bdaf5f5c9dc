"""Formats the results of a load test as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .report import LATENCIES, PERCENTILES

_NAME, _NUMBER = 26, 11  # widths in columns
_LATE_MS = 20.0  # delay in milliseconds of the client itself above which it is mentioned


def lines(title: str, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table; `summary` is a result of `report.summary`."""
    failed = f", {summary['failed']} failed" if summary["failed"] else ""
    yield title
    yield (
        f"{summary['requests']} requests{failed}, at most {summary['most_at_once']} at once, in "
        f"{summary['seconds']:,.1f} s: {summary['per_second']['requests']:,.2f} per second"
    )
    yield ""
    yield _row("tokens", ["in all", "per request", "per second"])
    for name, label in (("prompt", "read"), ("output", "written")):
        each = summary[f"{name}_tokens"] or {"mean": 0.0}
        per_second = summary["per_second"][f"{name}_tokens"]
        numbers = [f"{summary['tokens'][name]:,}", f"{each['mean']:,.1f}", f"{per_second:,.1f}"]
        yield _row(label, numbers)
    if cached := summary["tokens"]["cached"]:
        share = cached / max(1, summary["tokens"]["prompt"])
        yield _row("read from a cache", [f"{cached:,}", f"{share:.0%}", ""])
    if drafts := summary["tokens"]["draft"]:
        accepted, written = summary["tokens"]["draft_accepted"], summary["tokens"]["output"]
        per_step = written / max(1, written - accepted)
        yield _row("draft tokens", [f"{drafts:,}", f"{accepted / drafts:.0%}", ""]) + " accepted"
        yield _row("written per step", ["", f"{per_step:.2f}", ""])
    yield ""
    yield _row("milliseconds", ["mean", *(f"p{p}" for p in PERCENTILES), "max"])
    for name, label in LATENCIES.items():
        values = summary["milliseconds"][name]
        yield _row(label, [f"{v:,.1f}" for v in values.values()] if values else ["-"])
    yield from _notes(summary)


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    late = summary["client_late_milliseconds"]
    notes = [f"{count} failed: {text}" for text, count in summary["errors"].items()]
    if summary["tokens_counted_by"] != "usage":
        notes.append("The server sends no usage: tokens written are pieces of text.")
    if late and late["p99"] > _LATE_MS:
        notes.append(
            f"This client was up to {late['max']:,.0f} ms late to send: it is too slow for this "
            "load, or the machine is busy."
        )
    if notes:
        yield ""
        yield from notes


def _row(name: str, numbers: list[str]) -> str:
    return (f"{name:<{_NAME}}" + "".join(f"{n:>{_NUMBER}}" for n in numbers)).rstrip()
