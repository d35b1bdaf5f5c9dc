"""Requests for embeddings, scores and rankings of a loaded model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wherry.artifact.head import ClassHead, Head, ScoreHead

from ..answer.vector_shapes import ClassifyAnswer, EmbeddingAnswer, RerankAnswer, ScoreAnswer
from ..answer.vectors import (
    Answer,
    VectorPlan,
    classify_answer,
    cosine,
    embedding_answer,
    probabilities,
    probability,
    rerank_answer,
    score_answer,
)
from ..caller import Caller
from ..core.batch import Batch
from ..core.dispatcher import Dispatcher, Sink
from ..core.interface import Event, Job
from ..errors import RequestError
from ..request.vectors import VectorPlanner
from ..shapes.vectors import ClassifyRequest, EmbeddingRequest, RerankRequest, ScoreRequest

Scores = Callable[[Sequence[Event]], list[float]]


class VectorModel:
    """The methods of a loaded model for requests that generate no text.

    Args:
        name: the model's name in answers.
        planner: turns requests into plans.
        dispatcher: the owner of the core.
        most_at_once: maximum number of core requests that one API request runs at a time.
    """

    def __init__(
        self, name: str, planner: VectorPlanner, dispatcher: Dispatcher, *, most_at_once: int
    ) -> None:
        self._name = name
        self._planner = planner
        self._dispatcher = dispatcher
        self._most_at_once = most_at_once

    @property
    def head(self) -> Head | None:
        """Return the content of wherry-head.json; None: the model generates text."""
        return self._planner.head

    def begin(self, plan: VectorPlan[Answer], sink: Sink, *, soon: bool) -> Batch:
        """Submit the first jobs of a plan; arguments and errors as in Batch."""
        window = min(self._most_at_once, self._dispatcher.limit or self._most_at_once)
        return Batch(plan.jobs, self._dispatcher, sink, window, soon=soon)

    def embedding(self, request: EmbeddingRequest, caller: Caller) -> VectorPlan[EmbeddingAnswer]:
        """Plan a request for embeddings; errors as in `VectorPlanner.embeddings`.

        Raises:
            BusyError: the queue is full; checked before tokenization, as in the methods below.
        """
        self._dispatcher.check_room(1)
        jobs = self._planner.embeddings(request, caller)

        def whole(events: Sequence[Event]) -> EmbeddingAnswer:
            return embedding_answer(
                events,
                jobs,
                self._planner.pooling,
                model=request.model or self._name,
                dimensions=request.dimensions,
                as_text=request.encoding_format == "base64",
            )

        return VectorPlan(jobs, whole)

    def score(self, request: ScoreRequest, caller: Caller) -> VectorPlan[ScoreAnswer]:
        """Plan a request for the scores of pairs of texts.

        Raises:
            Abandoned: the client has gone.
            RequestError: the number of queries is neither one nor that of the documents, the model
                has no scores, or a text is too long.
        """
        queries, documents = request.queries, request.documents
        if len(queries) not in (1, len(documents)):
            raise RequestError(
                f"There are {len(queries)} queries (text_1) and {len(documents)} documents "
                "(text_2); send one query, or as many as documents",
                param="text_1",
            )
        jobs, scores = self._scores(queries, documents, ("", ""), None, request, caller)
        name = request.model or self._name
        return VectorPlan(jobs, lambda events: score_answer(scores(events), jobs, name))

    def classify(self, request: ClassifyRequest, caller: Caller) -> VectorPlan[ClassifyAnswer]:
        """Plan a request for the classes of texts; errors as in `VectorPlanner.classes`."""
        self._dispatcher.check_room(1)
        jobs, head = self._planner.classes(request, caller), self._planner.head
        assert isinstance(head, ClassHead)
        name = request.model or self._name
        return VectorPlan(jobs, lambda events: classify_answer(events, jobs, head, name))

    def rerank(self, request: RerankRequest, caller: Caller) -> VectorPlan[RerankAnswer]:
        """Plan a ranking of documents with the model's retrieval prompts; errors as in `score`."""
        prompts = self._planner.retrieval_prompts()
        texts = ([request.query], request.documents)
        jobs, scores = self._scores(*texts, prompts, request.instruction, request, caller)

        def whole(events: Sequence[Event]) -> RerankAnswer:
            return rerank_answer(
                scores(events),
                jobs,
                model=request.model or self._name,
                documents=request.documents if request.return_documents else None,
                top_n=request.top_n,
            )

        return VectorPlan(jobs, whole)

    def _scores(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        prompts: tuple[str, str],
        instruction: str | None,
        request: ScoreRequest | RerankRequest,
        caller: Caller,
    ) -> tuple[list[Job], Scores]:
        self._dispatcher.check_room(1)
        many, own, cut = len(queries) > 1, self._planner.head, self._planner.truncation(request)
        queries = self._planner.shortened(queries, cut.query, caller)
        documents = self._planner.shortened(documents, cut.document, caller)
        pairs = [(queries[i if many else 0], text) for i, text in enumerate(documents)]
        if isinstance(own, ClassHead):
            if instruction is not None:
                raise RequestError(
                    "instruction is for rerankers that read a prompt; this one reads pairs",
                    param="instruction",
                )
            jobs = self._planner.matches(pairs, caller, request, cut)
            return jobs, lambda events: [probabilities(event, own)[0] for event in events]
        if isinstance(own, ScoreHead):
            jobs = self._planner.pairs(pairs, instruction, caller, request, cut)
            return jobs, lambda events: [
                probability(yes, no) for yes, no in zip(events[::2], events[1::2], strict=True)
            ]
        head = self._planner.require_similarity()
        if instruction is not None:
            raise RequestError(
                "instruction is for rerankers; this model compares embeddings", param="instruction"
            )
        jobs = self._planner.texts(queries, prompts[0], caller, "query", request, cut)
        jobs += self._planner.texts(documents, prompts[1], caller, "documents", request, cut)

        def similarities(events: Sequence[Event]) -> list[float]:
            left, right = events[: len(queries)], events[len(queries) :]
            return [cosine(left[i if many else 0], b, head) for i, b in enumerate(right)]

        return jobs, similarities
