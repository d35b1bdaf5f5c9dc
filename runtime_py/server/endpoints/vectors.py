"""Paths whose answers are numbers: OpenAI's embeddings; scores and rankings as vLLM serves them.

Rankings have the shape of Jina's and Cohere's.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from ...answer.vectors import EmbeddingAnswer, RerankAnswer, ScoreAnswer
from ...load.vectors import VectorModel
from ...request.shapes import ignored, parse
from ...request.vector_shapes import EmbeddingRequest, RerankRequest, ScoreRequest
from ..pipeline import Pipeline, VectorEndpoint
from .described import described
from .routes import Routes

EMBEDDING = VectorEndpoint(partial(parse, EmbeddingRequest), VectorModel.embedding, ignored=ignored)
SCORE = VectorEndpoint(partial(parse, ScoreRequest), VectorModel.score, ignored=ignored)
RERANK = VectorEndpoint(partial(parse, RerankRequest), VectorModel.rerank, ignored=ignored)


class Vectors:
    """The handlers.

    Args:
        pipeline: answers.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def routes(self) -> Routes:
        """Path -> handler."""
        scores = {("POST", path): self.score for path in ("/v1/score", "/score")}
        ranks = {("POST", path): self.rerank for path in ("/v1/rerank", "/v2/rerank", "/rerank")}
        made = {("POST", path): self.embeddings for path in ("/v1/embeddings", "/embeddings")}
        return {**made, **scores, **ranks}

    @described(request=EmbeddingRequest, answer=EmbeddingAnswer)
    async def embeddings(self, request: Request) -> Response:
        """A vector for each input."""
        return await self._pipeline.numbers(request, EMBEDDING)

    @described(request=ScoreRequest, answer=ScoreAnswer)
    async def score(self, request: Request) -> Response:
        """How well documents fit their queries."""
        return await self._pipeline.numbers(request, SCORE)

    @described(request=RerankRequest, answer=RerankAnswer)
    async def rerank(self, request: Request) -> Response:
        """Documents in the order in which they fit a query."""
        return await self._pipeline.numbers(request, RERANK)
