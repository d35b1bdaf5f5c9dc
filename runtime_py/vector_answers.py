"""Records of embeddings (OpenAI's shape), scores and classes (vLLM's) and rankings (Cohere's)."""

from __future__ import annotations

from dataclasses import dataclass

from .answers import Shape


@dataclass(slots=True)
class VectorUsage(Shape):
    """Tokens that a request for embeddings or scores read.

    Jobs that share a prompt count it once.
    """

    prompt_tokens: int
    total_tokens: int


@dataclass(slots=True)
class Embedding(Shape):
    """One embedding vector: a list of numbers, or little-endian float32 in base64."""

    index: int  # place of its text in the input
    embedding: list[float] | str  # the vector
    object: str = "embedding"  # kind of the record


@dataclass(slots=True)
class EmbeddingAnswer(Shape):
    """The response of /v1/embeddings."""

    data: list[Embedding]  # a vector for each text
    model: str  # name of the model
    usage: VectorUsage  # token counts
    object: str = "list"  # kind of the record


@dataclass(slots=True)
class Score(Shape):
    """The score of one pair of texts."""

    index: int
    score: float
    object: str = "score"


@dataclass(slots=True)
class ScoreAnswer(Shape):
    """The response of /v1/score."""

    id: str
    created: int  # Unix time in seconds
    model: str
    data: list[Score]
    usage: VectorUsage
    object: str = "list"


@dataclass(slots=True)
class Classified(Shape):
    """The class of one text; `probs` are in the order of the model's labels."""

    index: int
    label: str
    probs: list[float]
    num_classes: int


@dataclass(slots=True)
class ClassifyAnswer(Shape):
    """The response of /classify."""

    id: str
    created: int  # Unix time in seconds
    model: str
    data: list[Classified]
    usage: VectorUsage
    object: str = "list"


@dataclass(slots=True)
class RankedDocument(Shape):
    """A document in a ranking."""

    text: str


@dataclass(slots=True)
class Ranked(Shape):
    """One ranked document and its score; `index` is its place in the request."""

    _optional = frozenset({"document"})
    index: int
    relevance_score: float
    document: RankedDocument | None = None


@dataclass(slots=True)
class RerankAnswer(Shape):
    """The response of /v1/rerank and /v2/rerank, with the best document first."""

    id: str
    model: str
    results: list[Ranked]
    usage: VectorUsage
