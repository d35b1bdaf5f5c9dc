"""The endpoints of embeddings, scores, classes and rankings.

Embeddings have OpenAI's shape, scores and classes vLLM's, rankings Jina's and Cohere's.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from ...answer.vectors import ClassifyAnswer, EmbeddingAnswer, RerankAnswer, ScoreAnswer
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
        ranks = {("POST", path): self.rerank for path in ("/v1/rerank", "/v2/rerank", "/rerank")}
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
        """Ranks documents by how well they match a query."""
        return await self._pipeline.numbers(request, RERANK)
