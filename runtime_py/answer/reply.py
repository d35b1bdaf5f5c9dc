"""The interface by which an endpoint writes its responses, streamed or whole.

The replies in OpenAI's shapes are in openai.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from ..tools.parts import joined
from .delta import Delta
from .generation import Generation

Whole_co = TypeVar("Whole_co", covariant=True)
Chunk_co = TypeVar("Chunk_co", covariant=True)


class Reply(Protocol[Whole_co, Chunk_co]):
    """The writer of one endpoint's response to one request."""

    def opening(self, generation: Generation) -> Sequence[Chunk_co]:
        """Return the chunks that a stream sends before the first delta."""

    def chunks(self, delta: Delta) -> Sequence[Chunk_co]:
        """Return the chunks for one choice's delta; `delta.finish` marks the end of the choice."""

    def closing(self, generation: Generation) -> Sequence[Chunk_co]:
        """Return the chunks that a stream sends after the end of the last choice."""

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Whole_co:
        """Return the response of a request without streaming; each delta is a whole choice."""


WholeT = TypeVar("WholeT")
ChunkT = TypeVar("ChunkT")


class Streaming(Generic[WholeT, ChunkT]):
    """Turns the deltas of a generation into the chunks of a streamed response."""

    def __init__(self, generation: Generation, reply: Reply[WholeT, ChunkT]) -> None:
        self._generation = generation
        self._reply = reply

    def opening(self) -> list[ChunkT]:
        """Return the chunks that come before the first event."""
        return list(self._reply.opening(self._generation))

    def chunks(self, deltas: Iterable[Delta]) -> list[ChunkT]:
        """Return the chunks for new deltas.

        The closing chunks follow the end of the last choice.
        """
        made: list[ChunkT] = []
        for delta in deltas:
            if delta.parts or delta.logprobs or delta.finish:
                made += self._reply.chunks(delta)
        if self._generation.done:
            made += self._reply.closing(self._generation)
        return made


class Collected(Generic[WholeT, ChunkT]):
    """Collects the deltas of a generation into one whole response."""

    def __init__(self, generation: Generation, reply: Reply[WholeT, ChunkT]) -> None:
        self._generation = generation
        self._reply = reply
        self._choices = [Delta(job.index) for job in generation.plan.jobs]

    def add(self, deltas: Iterable[Delta]) -> None:
        """Append new deltas to the choices that they belong to."""
        for delta in deltas:
            choice = self._choices[delta.index]
            choice.parts += delta.parts
            choice.logprobs += delta.logprobs
            choice.prompt += delta.prompt
            choice.finish, choice.stop = delta.finish, delta.stop

    def whole(self) -> WholeT:
        """Return the whole response; call it after the generation has ended."""
        for choice in self._choices:
            choice.parts = joined(choice.parts)
        return self._reply.whole(self._choices, self._generation)
