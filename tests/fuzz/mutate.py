"""Seeded damage: to bytes, and to JSON that stays JSON."""

from __future__ import annotations

import json
import random
from typing import Any

_NUMBERS = [0, -1, 1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30, -(2**63), 1.5,
            -0.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf")]  # fmt: skip
_TEXTS = ["", "x", "0", "../x", "/etc/passwd", "\x00", "\ud800", "é" * 300, "float64", "int1x",
          "{% for", "{{ 1/0 }}", "packed-0.bin", "wherry.json", "cpu", "cuda",
          "a" * 5000]  # fmt: skip
_PIECES = [b"\x00", b"\xff" * 8, b"[", b"{", b'"', b"\\u", b"\\ud800", b"NaN", b"1e999", b"-",
           b"9" * 30, b"null", b"true",
           b"\xef\xbb\xbf", b"\xc3\x28", b'{"a":' * 300, b"[" * 3000]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """As a disk, a network or a careless editor would have it."""
    at = rng.randrange(len(data) + 1)
    length = min(rng.choice([1, 2, 8, 100, 10_000]), len(data))
    start = rng.randrange(len(data) - length + 1)
    kind = rng.choice(["bit", "bit", "byte", "cut", "grow", "insert", "delete", "copy", "zero"])
    if kind in ("bit", "byte") and data:
        value = 1 << rng.randrange(8) if kind == "bit" else rng.randrange(1, 256)
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ value]) + data[at + 1 :]
    if kind == "cut":
        return data[:at]
    if kind == "grow":
        return data + rng.randbytes(rng.choice([1, 8, 1000]))
    if kind == "delete":
        return data[:start] + data[start + length :]
    if kind == "copy":
        return data[:at] + data[start : start + length] + data[at:]
    if kind == "zero":
        return data[:start] + bytes(length) + data[start + length :]
    return data[:at] + rng.choice(_PIECES) + data[at:]


def rewritten(text: bytes, rng: random.Random) -> bytes:
    """JSON with one to three of its values replaced, removed or added."""
    value = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        every = list(places(value))
        if not every:
            break
        holder, key = rng.choice(every)
        kind = rng.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.25 and isinstance(holder, dict):
            holder[rng.choice([*_TEXTS, "extra"])] = _value(rng)
        elif kind < 0.35:  # of another place
            there, other = rng.choice(every)
            holder[key] = json.loads(json.dumps(there[other]))
        else:
            holder[key] = _value(rng)
    return json.dumps(value).encode()


def places(value: Any) -> Any:
    """(holder, key) of everything inside, from the outside in."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def _value(rng: random.Random) -> Any:
    kind = rng.randrange(8)
    if kind < 4:
        return rng.choice(_NUMBERS)
    if kind < 6:
        return rng.choice(_TEXTS)
    if kind == 6:
        return rng.choice([None, True, False, [], {}, [[]], {"a": {}}, [None] * 1000])
    deep: Any = rng.choice([1, {}])
    for _ in range(rng.choice([5, 90, 400])):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    return deep
