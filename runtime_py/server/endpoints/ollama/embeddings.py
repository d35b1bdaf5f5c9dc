"""The endpoint /api/embed of Ollama, and its predecessor /api/embeddings for a single text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....answers import Shape
from ....caller import Caller
from ....host.request import HostRequest, checked
from ....host.running import Running
from ....load.model import LoadedModel
from ...pipeline import Endpoint, Pipeline, body_of
from ...wire.framing import Chunk
from ...wire.json_body import encoded_blocks, parse_json
from ..described import described
from ..routes import Routes
from ..shapes.counts import at_most
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
class EmbeddingRequest:
    """A parsed request for the pipeline; `name` is the client's name of the model."""

    model: str
    name: str
    request: dict[str, Any]
    outputs: int
    keep_alive: float | None
    ignored: list[str]
    single: bool
    stream: bool | None = False
    started: float = field(default_factory=time.perf_counter)


def embed(body: Any) -> EmbeddingRequest:
    """Return the request in a body of /api/embed; raises RequestError for a wrong body."""
    fields = validated(OllamaEmbedRequest, body)
    sent = {
        "input": fields.input or [],
        "dimensions": fields.dimensions,
        "truncate": fields.truncate,
    }
    return _request_of(fields, sent, single=False)


def embeddings(body: Any) -> EmbeddingRequest:
    """Return the request in a body of /api/embeddings; raises RequestError for a wrong body."""
    fields = validated(OllamaEmbeddingsRequest, body)
    return _request_of(fields, {"input": fields.prompt or ""}, single=True)


def _request_of(fields: _Fields, sent: dict[str, Any], *, single: bool) -> EmbeddingRequest:
    name = fields.requested
    options = [f"options.{n}" for n, value in (fields.options or {}).items() if value is not None]
    extra = [n for n, value in (fields.model_extra or {}).items() if value is not None]
    request = {n: value for n, value in {"model": name, **sent}.items() if value is not None}
    outputs = checked("embed", request).outputs
    return EmbeddingRequest(
        model=name,
        name=name,
        request=request,
        outputs=outputs,
        keep_alive=fields.keep_alive,
        ignored=sorted(extra) + sorted(options),
        single=single,
    )


class _Reply:
    """Writes the response to a request for embeddings; implements `pipeline.Writer`."""

    def __init__(self, request: EmbeddingRequest) -> None:
        self._request, self._planned = request, time.perf_counter()

    def opening(self, running: Running) -> Sequence[Chunk]:
        """Return no chunks: nothing is streamed; implements `Writer.opening`."""
        return ()

    def chunks(self, data: bytes) -> Sequence[Chunk]:
        """Return no chunks: nothing is streamed; implements `Writer.chunks`."""
        return ()

    def full_response(self, data: bytes) -> Iterator[bytes]:
        """Yield the response; implements `Writer.full_response`."""
        answer, request = json.loads(data), self._request
        vectors = [item["embedding"] for item in answer["data"]]
        if request.single:
            return encoded_blocks(EmbeddingsAnswer(vectors[0]).model_dump())
        response = EmbedAnswer(
            request.name or request.model,
            vectors,
            int((time.perf_counter() - request.started) * _NS),
            int((self._planned - request.started) * _NS),
            answer["usage"]["prompt_tokens"],
        )
        return encoded_blocks(response.model_dump())


def plan(_: LoadedModel, request: EmbeddingRequest, caller: Caller) -> tuple[HostRequest, _Reply]:
    """Return the request for C++, and the writer of its response."""
    return HostRequest("embed", request.request, outputs=request.outputs), _Reply(request)


def _endpoint(parse: Callable[[Any], EmbeddingRequest]) -> Endpoint[EmbeddingRequest]:
    return Endpoint(
        parse, plan, ignored=lambda request, _: request.ignored, keep_alive=lambda a: a.keep_alive
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
                async with self._pipeline.models.lease(fields.requested, fields.keep_alive):
                    return JSONResponse(EmbedAnswer(fields.requested, [], 0, 0, 0).model_dump())
        return await self._pipeline.answer(request, EMBED)

    @described(request=OllamaEmbeddingsRequest, answer=EmbeddingsAnswer)
    async def embeddings(self, request: Request) -> Response:
        """Embeds one text; without a text it loads the model."""
        body = await body_of(request)
        if len(body) <= _SMALL:
            fields = validated(OllamaEmbeddingsRequest, parse_json(body))
            if not fields.prompt:
                async with self._pipeline.models.lease(fields.requested, fields.keep_alive):
                    return JSONResponse(EmbeddingsAnswer([]).model_dump())
        return await self._pipeline.answer(request, EMBEDDINGS)
