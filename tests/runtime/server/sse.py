"""Server-sent events, as a client reads them."""

from __future__ import annotations

import json


def events(text: str) -> list[tuple[str | None, dict]]:
    """(name, data) of each but [DONE]; asserts that nothing else is in the stream."""
    pairs = []
    for block in text.removesuffix("data: [DONE]\n\n").split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert set(fields) <= {"event", "data"}, block
        pairs.append((fields.get("event"), json.loads(fields["data"])))
    return pairs
