"""Makes responses of the core's vectors: embeddings, scores, classes and rankings."""

from __future__ import annotations

import base64
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from wherry.artifact.head import ClassHead, EmbeddingHead
from wherry.errors import WherryError

from ..core.interface import Event, Job
from .shapes import Shape
from .vector_shapes import (
    Classified,
    ClassifyAnswer,
    Embedding,
    EmbeddingAnswer,
    Ranked,
    RankedDocument,
    RerankAnswer,
    Score,
    ScoreAnswer,
    VectorUsage,
)

Answer = TypeVar("Answer", bound=Shape)


@dataclass(frozen=True, slots=True)
class VectorPlan(Generic[Answer]):
    """A planned request: jobs for the core, and a function from their last events to a response."""

    jobs: list[Job]
    whole: Callable[[Sequence[Event]], Answer]

    @property
    def tokens(self) -> int:
        """Return the number of tokens that the jobs read."""
        return usage(self.jobs).total_tokens


def embedding_answer(
    events: Sequence[Event],
    jobs: Sequence[Job],
    head: EmbeddingHead,
    *,
    model: str,
    dimensions: int | None,
    as_text: bool,
) -> EmbeddingAnswer:
    """Return the response with one vector for each input, in the order of the inputs."""
    data = []
    for i, event in enumerate(events):
        values = vector(event, head, dimensions)
        data.append(Embedding(i, in_base64(values) if as_text else values.tolist()))
    return EmbeddingAnswer(data, model, usage(jobs))


def score_answer(scores: Sequence[float], jobs: Sequence[Job], model: str) -> ScoreAnswer:
    """Return the response with one score for each pair, in the order of the pairs."""
    data = [Score(i, score) for i, score in enumerate(scores)]
    return ScoreAnswer(_id("score"), int(time.time()), model, data, usage(jobs))


def classify_answer(
    events: Sequence[Event], jobs: Sequence[Job], head: ClassHead, model: str
) -> ClassifyAnswer:
    """Return the response with the most probable class of each text, in the order of the texts."""
    data = []
    for i, event in enumerate(events):
        found = probabilities(event, head)
        best = head.labels[max(range(len(found)), key=found.__getitem__)]
        data.append(Classified(i, best, found, len(found)))
    return ClassifyAnswer(_id("classify"), int(time.time()), model, data, usage(jobs))


def rerank_answer(
    scores: Sequence[float],
    jobs: Sequence[Job],
    *,
    model: str,
    documents: Sequence[str] | None,
    top_n: int | None,
) -> RerankAnswer:
    """Rank documents by score, the best first; documents of equal score stay in the order sent."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])[: top_n or None]
    texts = {i: RankedDocument(documents[i]) if documents else None for i in order}
    ranked = [Ranked(i, scores[i], texts[i]) for i in order]
    return RerankAnswer(_id("rerank"), model, ranked, usage(jobs))


def vector(event: Event, head: EmbeddingHead, dimensions: int | None = None) -> NDArray[np.float32]:
    """Return an event's embedding, float32 [dimensions, or all]; normalized if the model says so.

    Raises:
        WherryError: the embedding has NaN or infinity.
    """
    values = _numbers(event)[:dimensions]
    return _unit(values) if head.normalize else values


def probabilities(event: Event, head: ClassHead) -> list[float]:
    """Return what the head's activation makes of an event's logits, one number for each class.

    Raises:
        WherryError: a logit is NaN or infinity.
    """
    # math.exp and sums in order, as app/vectors/numbers.cc has them: the same bits in apps.
    found: list[float] = _numbers(event).astype(np.float64).tolist()
    if head.activation == "sigmoid":
        return [1 / (1 + math.exp(min(-logit, 700.0))) for logit in found]
    if head.activation == "softmax":
        top = max(found)
        powers = [math.exp(logit - top) for logit in found]
        total = float(np.cumsum(powers)[-1])
        return [power / total for power in powers]
    return found


def _numbers(event: Event) -> NDArray[np.float32]:
    values = np.frombuffer(event.embedding, np.float32)
    if not np.isfinite(values).all():
        raise WherryError(
            "The model's result holds NaN or infinity: the weights or the compiled model are "
            "damaged"
        )
    return values


def in_base64(values: NDArray[np.float32]) -> str:
    """Encode little-endian float32 in base64, as OpenAI sends embeddings."""
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def cosine(a: Event, b: Event, head: EmbeddingHead) -> float:
    """Compute the cosine similarity of two embeddings."""
    left, right = (_unit(vector(e, head)).astype(np.float64) for e in (a, b))
    total = float(np.cumsum(left * right)[-1])  # in order, as apps sum
    return min(max(total, -1.0), 1.0)  # rounding may exceed them


def probability(yes: Event, no: Event) -> float:
    """Compute the probability of yes among yes and no, from their log-probabilities."""
    return 1 / (1 + math.exp(min(no.logprob - yes.logprob, 700.0)))


def usage(jobs: Sequence[Job]) -> VectorUsage:
    """Count prompt tokens; a prompt that the two jobs of a pair share counts once."""
    prompts = {id(job.prompt): len(job.prompt) for job in jobs}
    return VectorUsage(sum(prompts.values()), sum(prompts.values()))


def _unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    # Summed in order, as app/vectors/numbers.cc does: the same bits in apps.
    length = float(np.sqrt(np.cumsum(np.square(values, dtype=np.float64))[-1]))
    return (values / length).astype(np.float32) if length else values


def _id(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(12)}"
