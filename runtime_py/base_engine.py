"""The part of the synchronous and the asynchronous engine that never blocks."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, TypeVar

from typing_extensions import Self, Unpack

from wherry.base import progress

from .answers import Shape
from .core.interface import CoreStats
from .host.running import Running
from .load.model import LoadedModel
from .load.options import LoadOptions
from .shaped import shaped

AnyShape = TypeVar("AnyShape", bound=Shape)
Chunk = TypeVar("Chunk")
SinkT = TypeVar("SinkT")


class BaseEngine:
    """A loaded model, its endpoints, and the lifetime of the engine that owns it."""

    loaded: LoadedModel

    def __init__(self, model: str | Path, **options: Unpack[LoadOptions]) -> None:
        with ExitStack() as shown:
            if "progress" not in options:
                options["progress"] = shown.enter_context(progress.shown())
            self._attach(LoadedModel.load(model, **options))

    @classmethod
    def of(cls, loaded: LoadedModel) -> Self:
        """Make an engine over a loaded model; closing the engine closes the model."""
        engine = cls.__new__(cls)
        engine._attach(loaded)
        return engine

    def _attach(self, loaded: LoadedModel) -> None:
        """Store the loaded model and create the endpoints over it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        loaded = self.loaded
        what = [loaded.name]
        if loaded.origin:
            manifest = loaded.origin.manifest
            what.append(f"in {manifest.quantization} for {manifest.target['name']}")
        return (
            f"<{type(self).__name__} {' '.join(what)}: context of {loaded.context:,} tokens, "
            f"{loaded.max_batch} requests at a time>"
        )

    def stats(self) -> CoreStats:
        """Return the core's counters: steps, tokens, pages."""
        return self.loaded.stats()


class BaseStream(Generic[Chunk, SinkT]):
    """A stream of one request, with the chunks that its reader has not taken yet.

    Garbage collection of the stream frees the request.

    Args:
        running: the request, which has been opened.
        sink: receives its messages.
        opening: the chunks before those of C++.
        ready: the JSON of the first chunks of C++.
        chunks: makes chunks of the JSON of one.
    """

    def __init__(
        self,
        running: Running,
        sink: SinkT,
        opening: Iterable[Chunk],
        ready: Iterable[bytes],
        chunks: Callable[[bytes], Sequence[Chunk]],
    ) -> None:
        self._running = running
        self._sink = sink
        self._chunks = chunks
        self._ready = deque(opening)
        self._add(ready)

    def _add(self, data: Iterable[bytes]) -> None:
        for one in data:
            self._ready.extend(self._chunks(one))

    def __del__(self) -> None:
        self._running.close()

    def __repr__(self) -> str:
        state = "ended" if self._running.done else "running"
        return f"<{type(self).__name__}: {state}, {len(self._ready)} chunks wait for their reader>"

    def _end(self) -> None:
        """Abort the request if it still runs; idempotent."""
        self._running.close()
        self._ready.clear()


def shaper(kind: type[AnyShape]) -> Callable[[bytes], Sequence[AnyShape]]:
    """Return a function that makes a list with one record of its JSON."""
    return lambda data: [shaped(kind, json.loads(data))]
