r"""Reads the requests of a trace: a file of JSON lines, one for each request.

Mooncake's lines (https://github.com/kvcache-ai/Mooncake, FAST25-release/traces):

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}

`timestamp` is in milliseconds. Each of `hash_ids` stands for 512 tokens; equal ids become equal
text in all requests, so that servers can share prefixes. `hash_ids` may be missing.

Wherry's own lines, with given texts or times in seconds:

    {"at": 0.25, "prompt_tokens": 128, "max_tokens": 64}
    {"at": 0.50, "prompt": "Why is the sky blue?", "max_tokens": 64}
    {"at": 1.75, "messages": [{"role": "user", "content": "Hello!"}]}
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wherry.errors import UsageError, listing

from .outcome import Ask
from .workload import RequestShape, Sizing, text

_BLOCK_TOKENS = 512  # tokens of one of Mooncake's hash ids
_MOONCAKE = {"timestamp", "input_length", "output_length", "hash_ids"}
_FIELDS = {"at", "prompt_tokens", "prompt", "messages", "max_tokens"}


def read(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a trace, ordered by time from 0; times are in "at".

    Raises:
        UsageError: lists all wrong lines.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path} cannot be read: {e}") from e
    rows, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_row(json.loads(line)))
        except ValueError as e:
            problems.append(f"line {number}: {e}")
    if problems or not rows:
        raise UsageError(
            f"{path} is not a trace:\n{listing(problems or ['it has no lines'])}\n"
            'A line is {"at": 0.5, "prompt_tokens": 128, "max_tokens": 64}, or one of Mooncake\'s: '
            '{"timestamp": 500, "input_length": 128, "output_length": 64}'
        )
    first = min(row["at"] for row in rows)
    rows.sort(key=lambda row: float(row["at"]))
    return [row | {"at": row["at"] - first} for row in rows]


def _row(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError(f"it holds a {type(raw).__name__}, not an object")
    if "timestamp" in raw:
        _known(raw, _MOONCAKE)
        row = {"at": _number(raw, "timestamp") / 1e3}
        row["prompt_tokens"] = _count(raw, "input_length")
        row["max_tokens"] = _count(raw, "output_length")
        ids = raw.get("hash_ids", [])
        if not isinstance(ids, list) or not all(isinstance(i, int | str) for i in ids):
            raise ValueError("hash_ids is not a list of numbers")
        return row | {"hash_ids": ids}
    _known(raw, _FIELDS)
    kinds = [name for name in ("prompt_tokens", "prompt", "messages") if name in raw]
    if len(kinds) != 1:
        raise ValueError("it takes one of prompt_tokens, prompt and messages")
    row = {"at": _number(raw, "at"), kinds[0]: raw[kinds[0]]}
    if "prompt_tokens" in raw:
        _count(raw, "prompt_tokens")
    if "max_tokens" in raw:
        row["max_tokens"] = _count(raw, "max_tokens")
    return row


def _known(raw: Mapping[str, Any], names: set[str]) -> None:
    if unknown := sorted(set(raw) - names):
        raise ValueError(f"unknown {', '.join(unknown)}; known are {', '.join(sorted(names))}")


def _number(raw: Mapping[str, Any], name: str) -> float:
    value = raw.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{name} is {value!r}; it takes a number from 0")
    return float(value)


def _count(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} is {value!r}; it takes a whole number from 1")
    return value


def asks(
    rows: list[dict[str, Any]],
    shape: RequestShape,
    sizing: Sizing,
    outputs: int,
    speed: float,
    seed: int,
) -> Iterator[Ask]:
    """Yield the requests of a trace.

    Args:
        rows: result of `read`.
        shape: the common part of all requests.
        sizing: tokens per word at this server.
        outputs: tokens to generate for lines without a number.
        speed: 2 is twice as fast as the trace.
        seed: seed of the random texts.
    """
    for number, row in enumerate(rows):
        limit = row.get("max_tokens", outputs)
        if "messages" in row:
            body = shape.body("", limit) | {"messages": row["messages"]}
        else:
            said = row["prompt"] if "prompt" in row else _text(row, sizing, f"{seed} {number}")
            body = shape.body(said, limit)
        yield Ask(body=body, at=row["at"] / speed)


def _text(row: Mapping[str, Any], sizing: Sizing, own: str) -> str:
    """Return a text of equal blocks for equal ids, and random words for the rest."""
    left = sizing.words(row["prompt_tokens"])
    block = Sizing(sizing.per_word).words(_BLOCK_TOKENS)
    parts = []
    for name in row.get("hash_ids", []):
        count = min(block, left)
        parts.append(text(block, random.Random(f"block {name}")).split()[:count])
        left -= count
    parts.append(text(left, random.Random(f"own {own}")).split() if left else [])
    return " ".join(word for part in parts for word in part)
