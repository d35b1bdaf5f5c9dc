"""What an endpoint's answers are made by, streamed or whole; OpenAI's are in openai.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from .delta import Delta
from .generation import Generation
from .parts import joined

Whole_co = TypeVar("Whole_co", covariant=True)
Chunk_co = TypeVar("Chunk_co", covariant=True)


class Reply(Protocol[Whole_co, Chunk_co]):
    """Shapes of one endpoint, for one request."""

    def opening(self, generation: Generation) -> Sequence[Chunk_co]:
        """Chunks before the first delta."""

    def chunks(self, delta: Delta) -> Sequence[Chunk_co]:
        """What is new of one choice, its end too (`delta.finish`)."""

    def closing(self, generation: Generation) -> Sequence[Chunk_co]:
        """Chunks after the end of the last choice."""

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Whole_co:
        """The answer that is not streamed; each delta is all of a choice."""


WholeT = TypeVar("WholeT")
ChunkT = TypeVar("ChunkT")


class Streaming(Generic[WholeT, ChunkT]):
    """The chunks of a streamed answer."""

    def __init__(self, generation: Generation, reply: Reply[WholeT, ChunkT]) -> None:
        self._generation = generation
        self._reply = reply

    def opening(self) -> list[ChunkT]:
        """Chunks before the first event."""
        return list(self._reply.opening(self._generation))

    def chunks(self, deltas: Iterable[Delta]) -> list[ChunkT]:
        """Chunks of new deltas, and of the end if this is it."""
        made: list[ChunkT] = []
        for delta in deltas:
            if delta.parts or delta.logprobs or delta.finish:
                made += self._reply.chunks(delta)
        if self._generation.done:
            made += self._reply.closing(self._generation)
        return made


class Collected(Generic[WholeT, ChunkT]):
    """A whole answer that grows."""

    def __init__(self, generation: Generation, reply: Reply[WholeT, ChunkT]) -> None:
        self._generation = generation
        self._reply = reply
        self._choices = [Delta(job.index) for job in generation.plan.jobs]

    def add(self, deltas: Iterable[Delta]) -> None:
        """Append to the choices."""
        for delta in deltas:
            choice = self._choices[delta.index]
            choice.parts += delta.parts
            choice.logprobs += delta.logprobs
            choice.prompt += delta.prompt
            choice.finish, choice.stop = delta.finish, delta.stop

    def whole(self) -> WholeT:
        """The answer, when the generation is done."""
        for choice in self._choices:
            choice.parts = joined(choice.parts)
        return self._reply.whole(self._choices, self._generation)
