"""Parses server-sent events as OpenAI's API uses them: each event has one line of data.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

DONE = b"[DONE]"


class Events:
    """Splits a stream into the data of its events, with the arrival time of each."""

    def __init__(self) -> None:
        self.data: list[tuple[float, bytes]] = []
        self.others: list[bytes] = []  # lines without event data, in a body that is no event stream
        self._rest = b""

    def feed(self, when: float, data: bytes) -> None:
        """Parse the next piece of the stream."""
        lines = (self._rest + data if self._rest else data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                self.data.append((when, line[5:].strip()))
            elif line.strip():
                self.others.append(line)

    @property
    def text(self) -> bytes:
        """Return the lines that are no events: the body of a response that is no event stream."""
        return b"\n".join([*self.others, self._rest])
