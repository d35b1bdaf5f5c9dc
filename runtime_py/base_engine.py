"""What the synchronous and the asynchronous engine share: all that does not wait."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, Generic, TypeVar

from typing_extensions import Self, Unpack

from .answer.generation import Generation
from .answer.reply import Streaming
from .core.interface import CoreStats
from .load.model import LoadedModel
from .load.options import LoadOptions

Chunk = TypeVar("Chunk")
SinkT = TypeVar("SinkT")


class BaseEngine:
    """A model, and the life of an engine over it."""

    loaded: LoadedModel

    def __init__(self, model: str | Path, **options: Unpack[LoadOptions]) -> None:
        self._attach(LoadedModel.load(model, **options))

    @classmethod
    def of(cls, loaded: LoadedModel) -> Self:
        """An engine over a model that is loaded already; they share its life."""
        engine = cls.__new__(cls)
        engine._attach(loaded)
        return engine

    def _attach(self, loaded: LoadedModel) -> None:
        """Set `loaded`, and the endpoints."""
        raise NotImplementedError

    def stats(self) -> CoreStats:
        """Counters of the core: steps, tokens, pages."""
        return self.loaded.stats()


class BaseStream(Generic[Chunk, SinkT]):
    """Chunks that have come and were not taken yet. A stream that nobody holds frees its request.

    Args:
        generation: the request.
        sink: where its events come.
        streaming: makes chunks of them.
    """

    def __init__(
        self, generation: Generation, sink: SinkT, streaming: Streaming[Any, Chunk]
    ) -> None:
        self._generation = generation
        self._sink = sink
        self._streaming = streaming
        self._ready = deque(streaming.opening())

    def __del__(self) -> None:
        self._generation.close()

    def _end(self) -> None:
        """Abort what has not ended; idempotent."""
        self._generation.close()
        self._ready.clear()
