"""The endpoints of embeddings, scores, classes and rankings.

Embeddings have OpenAI's shape, scores and classes vLLM's, rankings Jina's and Cohere's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...answer.vector_shapes import ClassifyAnswer, EmbeddingAnswer, RerankAnswer, ScoreAnswer
from ...load.vectors import VectorModel
from ...shapes.requests import ignored, parse
from ...shapes.vectors import ClassifyRequest, EmbeddingRequest, RerankRequest, ScoreRequest
from ..pipeline import Pipeline, VectorEndpoint
from .described import described
from .routes import Routes

EMBEDDING = VectorEndpoint(partial(parse, EmbeddingRequest), VectorModel.embedding, ignored=ignored)
SCORE = VectorEndpoint(partial(parse, ScoreRequest), VectorModel.score, ignored=ignored)
CLASSIFY = VectorEndpoint(partial(parse, ClassifyRequest), VectorModel.classify, ignored=ignored)
RERANK = VectorEndpoint(partial(parse, RerankRequest), VectorModel.rerank, ignored=ignored)


def _cutting(fields: Any) -> RerankRequest:
    """Return a request whose texts are cut unless it says otherwise, as at Cohere and Jina."""
    request = parse(RerankRequest, fields)
    whole = request.truncate is None
    return request.model_copy(update={"truncate": True}) if whole else request


RERANK_CUT = VectorEndpoint(_cutting, VectorModel.rerank, ignored=ignored)


class Vectors:
    """Handlers of embeddings, scores, classes and rankings.

    Args:
        pipeline: the pipeline that answers requests.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        scores = {("POST", path): self.score for path in ("/v1/score", "/score")}
        ranks = {("POST", path): self.rerank_cut for path in ("/v1/rerank", "/v2/rerank")}
        ranks[("POST", "/rerank")] = self.rerank
        made = {("POST", path): self.embeddings for path in ("/v1/embeddings", "/embeddings")}
        classes = {("POST", path): self.classify for path in ("/classify", "/v1/classify")}
        return {**made, **scores, **classes, **ranks}

    @described(request=EmbeddingRequest, answer=EmbeddingAnswer)
    async def embeddings(self, request: Request) -> Response:
        """Embeds each input as a vector."""
        return await self._pipeline.numbers(request, EMBEDDING)

    @described(request=ScoreRequest, answer=ScoreAnswer)
    async def score(self, request: Request) -> Response:
        """Scores how well documents match queries."""
        return await self._pipeline.numbers(request, SCORE)

    @described(request=ClassifyRequest, answer=ClassifyAnswer)
    async def classify(self, request: Request) -> Response:
        """Tells the class of each text, with the probability of every class."""
        return await self._pipeline.numbers(request, CLASSIFY)

    @described(request=RerankRequest, answer=RerankAnswer)
    async def rerank(self, request: Request) -> Response:
        """Ranks documents by how well they match a query; too long a text is an error."""
        return await self._pipeline.numbers(request, RERANK)

    @described(request=RerankRequest, answer=RerankAnswer)
    async def rerank_cut(self, request: Request) -> Response:
        """Ranks documents by how well they match a query; too long a text is cut."""
        return await self._pipeline.numbers(request, RERANK_CUT)
