"""The endpoint /api/embed of Ollama, and its predecessor /api/embeddings for a single text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....answer.shapes import Shape
from ....answer.vectors import VectorPlan
from ....caller import Caller
from ....core.interface import Event
from ....load.vectors import VectorModel
from ....shapes.counts import at_most
from ....shapes.requests import parse
from ....shapes.vectors import EmbeddingRequest
from ...pipeline import Pipeline, VectorEndpoint, body_of
from ...wire.json_body import parse_json
from ..described import described
from ..routes import Routes
from .parsing import validated
from .requests import MAX_OPTIONS, KeepAlive, ShowRequest

_NS = 10**9
_SMALL = 2**12  # bytes up to which a body may be a request that has no prompt


class _Fields(ShowRequest):
    options: Annotated[dict[str, Any] | None, at_most(MAX_OPTIONS, "options")] = None
    keep_alive: KeepAlive = None


class OllamaEmbedRequest(_Fields):
    """The body of POST /api/embed."""

    input: str | Annotated[list[str], Field(fail_fast=True)] | None = None
    dimensions: int | None = Field(None, ge=1, le=2**20)
    # whether a text that is too long is cut at its end; if false, it is an error
    truncate: bool = True


class OllamaEmbeddingsRequest(_Fields):
    """The body of POST /api/embeddings."""

    prompt: str | None = None


@dataclass(slots=True)
class EmbedAnswer(Shape):
    """The response of /api/embed; durations are nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


@dataclass(slots=True)
class EmbeddingsAnswer(Shape):
    """The response of /api/embeddings."""

    embedding: list[float]


@dataclass(slots=True)
class Asked:
    """A parsed request for the pipeline; `name` is the client's name of the model."""

    model: str
    name: str
    request: EmbeddingRequest
    keep_alive: float | None
    ignored: list[str]
    single: bool
    started: float = field(default_factory=time.perf_counter)


def embed(body: Any) -> Asked:
    """Return the request in a body of /api/embed; raises RequestError for a wrong body."""
    fields = validated(OllamaEmbedRequest, body)
    sent = {
        "input": fields.input or [],
        "dimensions": fields.dimensions,
        "truncate": fields.truncate,
    }
    return _asked(fields, sent, single=False)


def embeddings(body: Any) -> Asked:
    """Return the request in a body of /api/embeddings; raises RequestError for a wrong body."""
    fields = validated(OllamaEmbeddingsRequest, body)
    return _asked(fields, {"input": fields.prompt or ""}, single=True)


def _asked(fields: _Fields, sent: dict[str, Any], *, single: bool) -> Asked:
    name = fields.asked
    options = [f"options.{n}" for n, value in (fields.options or {}).items() if value is not None]
    extra = [n for n, value in (fields.model_extra or {}).items() if value is not None]
    return Asked(
        model=name,
        name=name,
        request=parse(EmbeddingRequest, {"model": name, **sent}),
        keep_alive=fields.keep_alive,
        ignored=sorted(extra) + sorted(options),
        single=single,
    )


def plan(model: VectorModel, asked: Asked, caller: Caller) -> VectorPlan[Shape]:
    """Return the plan of the embeddings; errors as in VectorModel.embedding."""
    planned = time.perf_counter()
    made = model.embedding(asked.request, caller)

    def whole(events: Sequence[Event]) -> Shape:
        answer = made.whole(events)
        vectors = [list(map(float, item.embedding)) for item in answer.data]
        if asked.single:
            return EmbeddingsAnswer(vectors[0])
        return EmbedAnswer(
            asked.name or asked.model,
            vectors,
            int((time.perf_counter() - asked.started) * _NS),
            int((planned - asked.started) * _NS),
            answer.usage.prompt_tokens,
        )

    return VectorPlan(made.jobs, whole)


def _endpoint(parse_body: Any) -> VectorEndpoint[Asked]:
    return VectorEndpoint(
        parse_body, plan, lambda asked: asked.ignored, lambda asked: asked.keep_alive
    )


EMBED, EMBEDDINGS = _endpoint(embed), _endpoint(embeddings)


class OllamaEmbeddings:
    """Handlers of /api/embed and /api/embeddings.

    Args:
        pipeline: the pipeline that answers requests.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {("POST", "/api/embed"): self.embed, ("POST", "/api/embeddings"): self.embeddings}

    @described(request=OllamaEmbedRequest, answer=EmbedAnswer)
    async def embed(self, request: Request) -> Response:
        """Embeds each text; without a text it loads the model."""
        body = await body_of(request)
        if len(body) <= _SMALL:
            fields = validated(OllamaEmbedRequest, parse_json(body))
            if not fields.input:
                async with self._pipeline.models.lease(fields.asked, fields.keep_alive):
                    return JSONResponse(EmbedAnswer(fields.asked, [], 0, 0, 0).model_dump())
        return await self._pipeline.numbers(request, EMBED)

    @described(request=OllamaEmbeddingsRequest, answer=EmbeddingsAnswer)
    async def embeddings(self, request: Request) -> Response:
        """Embeds one text; without a text it loads the model."""
        body = await body_of(request)
        if len(body) <= _SMALL:
            fields = validated(OllamaEmbeddingsRequest, parse_json(body))
            if not fields.prompt:
                async with self._pipeline.models.lease(fields.asked, fields.keep_alive):
                    return JSONResponse(EmbeddingsAnswer([]).model_dump())
        return await self._pipeline.numbers(request, EMBEDDINGS)
