"""Ollama's embeddings: /api/embed, and /api/embeddings as older clients ask for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ....answer.shapes import Shape
from ....answer.vectors import EmbeddingAnswer, VectorPlan
from ....core.interface import Event
from ....load.vectors import VectorModel
from ....request.caller import Caller
from ....request.counts import at_most
from ....request.shapes import parse
from ....request.vector_shapes import MAX_INPUTS, EmbeddingRequest
from ...pipeline import Pipeline, VectorEndpoint
from ..described import described
from ..routes import Routes
from .parsing import validated
from .requests import MAX_OPTIONS, KeepAlive, ModelFields

_NS = 10**9


class _EmbeddingFields(ModelFields):
    options: Annotated[dict[str, Any] | None, at_most(MAX_OPTIONS, "options")] = None
    keep_alive: KeepAlive = None


class EmbedFields(_EmbeddingFields):
    """POST /api/embed."""

    input: (
        str | Annotated[list[str], Field(fail_fast=True), at_most(MAX_INPUTS, "texts")] | None
    ) = None
    truncate: bool = True
    dimensions: int | None = Field(None, ge=1, le=2**20)


class OldEmbedFields(_EmbeddingFields):
    """POST /api/embeddings."""

    prompt: str | None = None


@dataclass(slots=True)
class EmbedAnswer(Shape):
    """Answer of /api/embed; durations are nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int  # that was waited for the model
    prompt_eval_count: int


@dataclass(slots=True)
class OldEmbedAnswer(Shape):
    """Answer of /api/embeddings."""

    embedding: list[float]


@dataclass(slots=True)
class _Asked:
    """A request (`pipeline.Named`)."""

    model: str
    name: str  # as the client has it
    texts: list[str]
    old: bool
    fields: _EmbeddingFields
    request: EmbeddingRequest
    started: float


def _embed(body: Any) -> _Asked:
    fields = validated(EmbedFields, body)
    texts = [fields.input] if isinstance(fields.input, str) else list(fields.input or ())
    asked = {"dimensions": fields.dimensions, "truncate": fields.truncate}
    return _asked(fields, [] if texts == [""] else texts, asked, old=False)


def _old_embed(body: Any) -> _Asked:
    fields = validated(OldEmbedFields, body)
    return _asked(fields, [fields.prompt] if fields.prompt else [], {"truncate": True}, old=True)


def _asked(fields: _EmbeddingFields, texts: list[str], asked: Any, *, old: bool) -> _Asked:
    request = parse(EmbeddingRequest, {"input": texts, **asked})
    name = fields.asked
    return _Asked(name, name, texts, old, fields, request, time.perf_counter())


def _plan(
    model: VectorModel, asked: _Asked, caller: Caller
) -> VectorPlan[EmbedAnswer] | VectorPlan[OldEmbedAnswer]:
    """Without a text the model is loaded, and there are no vectors."""
    planned = time.perf_counter()
    made = model.embedding(asked.request, caller) if asked.texts else None

    def vectors(events: Sequence[Event]) -> tuple[list[list[float]], int]:
        if made is None:
            return [], 0
        answer: EmbeddingAnswer = made.whole(events)
        found = [item.embedding for item in answer.data if isinstance(item.embedding, list)]
        return found, answer.usage.prompt_tokens

    def whole(events: Sequence[Event]) -> EmbedAnswer:
        found, tokens = vectors(events)
        total, loading = time.perf_counter() - asked.started, planned - asked.started
        return EmbedAnswer(asked.name, found, int(total * _NS), int(loading * _NS), tokens)

    def old(events: Sequence[Event]) -> OldEmbedAnswer:
        return OldEmbedAnswer(next(iter(vectors(events)[0]), []))

    jobs = made.jobs if made else []
    return VectorPlan(jobs, old) if asked.old else VectorPlan(jobs, whole)


def _ignored(asked: _Asked) -> list[str]:
    """Options are about writing."""
    extra = [n for n, value in (asked.fields.model_extra or {}).items() if value is not None]
    return sorted([*extra, *(f"options.{name}" for name in asked.fields.options or {})])


def _keep_alive(asked: _Asked) -> float | None:
    return asked.fields.keep_alive


EMBED = VectorEndpoint(_embed, _plan, _ignored, _keep_alive)
OLD_EMBED = VectorEndpoint(_old_embed, _plan, _ignored, _keep_alive)


class OllamaEmbedding:
    """The handlers.

    Args:
        pipeline: answers.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def routes(self) -> Routes:
        """Path -> handler."""
        return {
            ("POST", "/api/embed"): self.embed,
            ("POST", "/api/embeddings"): self.old_embed,
        }

    @described(request=EmbedFields, answer=EmbedAnswer)
    async def embed(self, request: Request) -> Response:
        """A vector for each text."""
        return await self._pipeline.numbers(request, EMBED)

    @described(request=OldEmbedFields, answer=OldEmbedAnswer)
    async def old_embed(self, request: Request) -> Response:
        """The vector of a text."""
        return await self._pipeline.numbers(request, OLD_EMBED)
