"""From pieces of text to answers in OpenAI's shapes, streamed or whole."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from .assembler import Delta, LoggedToken
from .generation import Generation
from .shapes import (
    ChatChoice,
    ChatChunkChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatDelta,
    ChatLogprobs,
    ChatMessage,
    Completion,
    CompletionChoice,
    CompletionLogprobs,
    TokenLogprob,
    TopLogprob,
)

Whole_co = TypeVar("Whole_co", covariant=True)
Chunk_co = TypeVar("Chunk_co", covariant=True)


class Reply(Protocol[Whole_co, Chunk_co]):
    """Shapes of one endpoint, for one request."""

    def opening(self, choices: int) -> Sequence[Chunk_co]:
        """Chunks before the first text."""

    def chunks(self, delta: Delta) -> Sequence[Chunk_co]:
        """One piece of one choice; several chunks where a protocol says it so."""

    def closing(self, generation: Generation) -> Sequence[Chunk_co]:
        """Chunks after the last text, as the one with the usage."""

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Whole_co:
        """The answer that is not streamed."""


class _Common:
    def __init__(self, model: str, kind: str) -> None:
        self._id = f"{kind}-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._model = model


class ChatReply(_Common):
    """Answers of /v1/chat/completions."""

    def __init__(self, model: str, *, logprobs: bool) -> None:
        super().__init__(model, "chatcmpl")
        self._wants_logprobs = logprobs

    def _chunk(self, *choices: ChatChunkChoice) -> ChatCompletionChunk:
        return ChatCompletionChunk(self._id, self._created, self._model, list(choices))

    def opening(self, choices: int) -> list[ChatCompletionChunk]:
        """See Reply: each choice's role."""
        role = ChatDelta(role="assistant", content="")
        return [self._chunk(ChatChunkChoice(i, role)) for i in range(choices)]

    def chunks(self, delta: Delta) -> list[ChatCompletionChunk]:
        """See Reply: one."""
        added = ChatDelta(content=delta.text) if delta.text or not delta.finish else ChatDelta()
        logprobs = self._logprobs(delta.logprobs) if delta.logprobs else None
        return [self._chunk(ChatChunkChoice(delta.index, added, delta.finish, logprobs))]

    def closing(self, generation: Generation) -> list[ChatCompletionChunk]:
        """See Reply: the usage, in a chunk without choices, if it was asked for."""
        if not generation.plan.include_usage:
            return []
        chunk = self._chunk()
        chunk.usage = generation.usage
        return [chunk]

    def whole(self, choices: Sequence[Delta], generation: Generation) -> ChatCompletion:
        """See Reply."""
        made = [
            ChatChoice(
                d.index,
                ChatMessage(d.text),
                d.finish or "stop",
                self._logprobs(d.logprobs) if self._wants_logprobs else None,
            )
            for d in choices
        ]
        return ChatCompletion(self._id, self._created, self._model, made, generation.usage)

    def _logprobs(self, tokens: Iterable[LoggedToken]) -> ChatLogprobs:
        return ChatLogprobs(
            [
                TokenLogprob(
                    _text(t.piece),
                    t.logprob or 0.0,  # chats echo nothing: there always is one
                    list(t.piece),
                    [TopLogprob(_text(piece), p, list(piece)) for piece, p in t.top],
                )
                for t in tokens
            ]
        )


class CompletionReply(_Common):
    """Answers of /v1/completions."""

    def __init__(self, model: str, *, logprobs: bool) -> None:
        super().__init__(model, "cmpl")
        self._wants_logprobs = logprobs

    def opening(self, choices: int) -> list[Completion]:
        """See Reply: nothing."""
        return []

    def chunks(self, delta: Delta) -> list[Completion]:
        """See Reply: one."""
        return [Completion(self._id, self._created, self._model, [self._choice(delta)])]

    def closing(self, generation: Generation) -> list[Completion]:
        """See Reply: the usage, in a chunk without choices, if it was asked for."""
        if not generation.plan.include_usage:
            return []
        return [Completion(self._id, self._created, self._model, usage=generation.usage)]

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Completion:
        """See Reply."""
        made = [self._choice(d) for d in choices]
        return Completion(self._id, self._created, self._model, made, generation.usage)

    def _choice(self, delta: Delta) -> CompletionChoice:
        logprobs = self._logprobs(delta.logprobs) if self._wants_logprobs else None
        return CompletionChoice(delta.index, delta.text, delta.finish, logprobs)

    def _logprobs(self, tokens: Sequence[LoggedToken]) -> CompletionLogprobs:
        return CompletionLogprobs(
            tokens=[_text(t.piece) for t in tokens],
            token_logprobs=[t.logprob for t in tokens],
            top_logprobs=[
                None if t.logprob is None else {_text(piece): p for piece, p in t.top}
                for t in tokens
            ],
            text_offset=[t.offset for t in tokens],
        )


def _text(piece: bytes) -> str:
    r"""A token as a text; a part of a character has OpenAI's form `bytes:\xe4\xb8`."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


WholeT = TypeVar("WholeT")
ChunkT = TypeVar("ChunkT")


class Streaming(Generic[WholeT, ChunkT]):
    """The chunks of a streamed answer."""

    def __init__(self, generation: Generation, reply: Reply[WholeT, ChunkT]) -> None:
        self._generation = generation
        self._reply = reply

    def opening(self) -> list[ChunkT]:
        """Chunks before the first event."""
        return list(self._reply.opening(len(self._generation.plan.jobs)))

    def chunks(self, deltas: Iterable[Delta]) -> list[ChunkT]:
        """Chunks of new deltas, and of the end if this is it."""
        made: list[ChunkT] = []
        for delta in deltas:
            if delta.text or delta.logprobs or delta.finish:
                made += self._reply.chunks(delta)
        if self._generation.done:
            made += self._reply.closing(self._generation)
        return made


class Collected(Generic[WholeT, ChunkT]):
    """A whole answer that grows."""

    def __init__(self, generation: Generation, reply: Reply[WholeT, ChunkT]) -> None:
        self._generation = generation
        self._reply = reply
        self._texts: list[list[str]] = [[] for _ in generation.plan.jobs]
        self._choices = [Delta(job.index) for job in generation.plan.jobs]

    def add(self, deltas: Iterable[Delta]) -> None:
        """Append to the choices."""
        for delta in deltas:
            choice = self._choices[delta.index]
            self._texts[delta.index].append(delta.text)
            choice.logprobs += delta.logprobs
            choice.finish = delta.finish

    def whole(self) -> WholeT:
        """The answer, when the generation is done."""
        for choice, texts in zip(self._choices, self._texts, strict=True):
            choice.text = "".join(texts)
        return self._reply.whole(self._choices, self._generation)
