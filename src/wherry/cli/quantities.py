"""Formats sizes and times for people."""

from __future__ import annotations


def size(count: int) -> str:
    """Format a number of bytes for display."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if count >= scale / 10:
            return f"{count / scale:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"


def ago(seconds: float) -> str:
    """Format a past time for display, as "3 days ago"."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "now"
