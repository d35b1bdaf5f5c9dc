"""A server that answers as it is told, byte by byte: what a client has to get right."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any


def chunk(text: str) -> bytes:
    """One event of a chat's stream."""
    return event({"choices": [{"index": 0, "delta": {"content": text}}]})


def usage(prompt: int, output: int, cached: int = 0, accepted: int = 0, rejected: int = 0) -> bytes:
    """The event with the counts."""
    counts = {"prompt_tokens": prompt, "completion_tokens": output}
    drafts = {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}
    details = {
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": drafts,
    }
    return event({"choices": [], "usage": counts | details})


def event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


@dataclass
class StandIn:
    """Answers each request with `answer(body)`: a status, and pieces with pauses before them.

    A piece of None hangs up.
    """

    answer: Any
    models: list[str] = field(default_factory=lambda: ["first", "second"])
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    async def __aenter__(self) -> StandIn:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if head.startswith("GET"):
            listed = json.dumps({"data": [{"id": m} for m in self.models]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(listed) + listed)
            return True
        (length,) = [
            int(line.split(":")[1])
            for line in head.splitlines()
            if line.lower().startswith("content-length")
        ]
        self.bodies.append(json.loads(await reader.readexactly(length)))
        status, pieces = self.answer(self.bodies[-1])
        writer.write(b"HTTP/1.1 %d Said\r\nTransfer-Encoding: chunked\r\n\r\n" % status)
        for pause, piece in pieces:
            await asyncio.sleep(pause)
            if piece is None:
                return False
            writer.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
