"""When two answers with calls of tools are equal: whole ones byte for byte, streams joined."""

from __future__ import annotations

import json
from typing import Any

from .answers import fixed


def without_ids(answer: dict[str, Any], said: str) -> str:
    """An answer without generated ids, so that two answers to one request are equal."""
    for choice in answer["choices"]:
        for call in choice["message"].get("tool_calls", ()):
            if call["id"] not in said:
                call["id"] = len(call["id"])
    return fixed(answer)


def joined_stream(chunks: list[Any]) -> tuple[str, str, str | None]:
    """The text and the reasoning of a stream, and why it ended."""
    choices = [c["choices"][0] for c in chunks if c["choices"]]
    deltas = [c["delta"] for c in choices]
    text = "".join(d.get("content") or "" for d in deltas)
    reasoning = "".join(d.get("reasoning_content") or "" for d in deltas)
    return text, reasoning, choices[-1]["finish_reason"]


def calls_in(chunks: list[Any]) -> list[str]:
    """The calls of a stream: the keys of their first pieces, then arguments joined.

    Clients take one entry a call from a chunk, and nothing from a content that is empty.
    """
    texts: list[str] = []
    empty = [c for c in chunks for one in c["choices"] if one["delta"].get("content") == ""]
    for chunk in chunks:
        for choice in chunk["choices"]:
            calls = choice["delta"].get("tool_calls", ())
            assert len({call["index"] for call in calls}) == len(calls), chunk
            for call in calls:
                of_call = call.get("custom") or call["function"]
                arguments = of_call.pop("input" if "custom" in call else "arguments")
                if "id" in call:
                    texts.append(json.dumps({**call, "id": ""}) + " ")
                else:
                    assert list(call) == ["index", "custom" if "custom" in call else "function"]
                texts[call["index"]] += arguments
    assert not (texts and empty), empty
    return texts
