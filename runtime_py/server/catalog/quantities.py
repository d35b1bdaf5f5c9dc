"""Parses durations and sizes: "5m", "1h30m", -1; "12GB", "512MiB"."""

from __future__ import annotations

import math
import re

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "B": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("KMGT", 1)
    for suffix, base in (("", 1000), ("B", 1000), ("iB", 1024))
}
_PART = r"\d+(?:\.\d+)?"
_DURATION = re.compile(rf"(-)?((?:{_PART}(?:ms|[smhd]))+|{_PART})")
_SIZE = re.compile(rf"({_PART})\s*([a-z]*)", re.IGNORECASE)


def seconds_of(value: object) -> float:
    """Return the seconds of a duration; a negative duration is infinite, as in Ollama.

    Args:
        value: a number of seconds, or a text of numbers with units: "5m", "1h30m", "300ms", "-1".

    Raises:
        ValueError: the value is no duration.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return math.inf if value < 0 else float(value)
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise ValueError("a duration is a number of seconds, or as 30s, 5m, 1h30m; -1: for ever")
    if match[1]:
        return math.inf
    parts = re.findall(rf"({_PART})(ms|[smhd])?", match[2])
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts)


def bytes_of(value: object) -> int:
    """Return the bytes of a size such as "12GB".

    K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024.

    Raises:
        ValueError: the value is no size.
    """
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    units = {unit.lower(): size for unit, size in _BYTES.items()}
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if match and match[2].lower() in units and (size := float(match[1])) > 0:
        return int(size * units[match[2].lower()])
    raise ValueError("a size is a number of bytes, or as 800MB, 12GB, 16GiB")
