"""Sends a load test's requests to an engine in this process, without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from wherry.errors import WherryError

from .outcome import Outcome

if TYPE_CHECKING:
    from wherry.runtime import AsyncMLCEngine


class EngineTarget:
    """Load-test target that is an engine in this process; see `outcome.Target`."""

    def __init__(self, engine: AsyncMLCEngine, model: str) -> None:
        self.name = f"{model} in this process"
        self.model = model
        self._engine = engine

    async def takes(self, body: Mapping[str, Any]) -> bool:
        """Return True: the engine accepts every field that a load test sends."""
        return True

    async def ask(self, body: Mapping[str, Any], outcome: Outcome) -> None:
        """Send one request and record its outcome."""
        kind: Any = self._engine.chat if "messages" in body else self._engine
        options = {"stream": True, "stream_options": {"include_usage": True}}
        try:
            async with await kind.completions.create(**body, **options) as stream:
                while chunks := await stream.batch():
                    _read(chunks, outcome)
        except WherryError as e:
            outcome.error = str(e)

    async def close(self) -> None:
        """Do nothing: the engine's owner closes it."""


def _read(chunks: list[Any], outcome: Outcome) -> None:
    now = perf_counter()
    for chunk in chunks:
        choices = chunk.choices
        if any(c.delta.content if hasattr(c, "delta") else c.text for c in choices):
            outcome.pieces.append(now)
        if chunk.usage is not None:
            outcome.count(chunk.usage.model_dump())
