"""The endpoints of embeddings, scores, classes and rankings.

Embeddings have OpenAI's shape, scores and classes vLLM's, rankings Jina's and Cohere's.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...vector_answers import ClassifyAnswer, EmbeddingAnswer, RerankAnswer, ScoreAnswer
from ..pipeline import Body, Pipeline, body_parser, endpoint_of
from .described import described
from .routes import Routes
from .shapes import openai as shapes

EMBEDDING, SCORE = endpoint_of("embed"), endpoint_of("score")
CLASSIFY, RERANK = endpoint_of("classify"), endpoint_of("rerank")


def _cutting(fields: Any) -> Body:
    """Return a request whose texts are cut unless it says otherwise, as at Cohere and Jina."""
    body = body_parser("rerank")(fields)
    if fields.get("truncate") is None:
        body.fields, body.json = {**fields, "truncate": True}, None
    return body


RERANK_CUT = endpoint_of("rerank", _cutting)


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
        embeddings = {("POST", path): self.embeddings for path in ("/v1/embeddings", "/embeddings")}
        classes = {("POST", path): self.classify for path in ("/classify", "/v1/classify")}
        return {**embeddings, **scores, **classes, **ranks}

    @described(request=shapes.EMBEDDING, answer=EmbeddingAnswer)
    async def embeddings(self, request: Request) -> Response:
        """Embeds each input as a vector."""
        return await self._pipeline.answer(request, EMBEDDING)

    @described(request=shapes.SCORE, answer=ScoreAnswer)
    async def score(self, request: Request) -> Response:
        """Scores how well documents match queries."""
        return await self._pipeline.answer(request, SCORE)

    @described(request=shapes.CLASSIFY, answer=ClassifyAnswer)
    async def classify(self, request: Request) -> Response:
        """Tells the class of each text, with the probability of every class."""
        return await self._pipeline.answer(request, CLASSIFY)

    @described(request=shapes.RERANK, answer=RerankAnswer)
    async def rerank(self, request: Request) -> Response:
        """Ranks documents by how well they match a query; too long a text is an error."""
        return await self._pipeline.answer(request, RERANK)

    @described(request=shapes.RERANK, answer=RerankAnswer)
    async def rerank_cut(self, request: Request) -> Response:
        """Ranks documents by how well they match a query; too long a text is cut."""
        return await self._pipeline.answer(request, RERANK_CUT)
