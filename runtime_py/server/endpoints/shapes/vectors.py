"""Requests that generate no text: embeddings, scores, classes, rankings (OpenAI, vLLM, Cohere)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from .kinds import Prompt, RequestShape

_Name = Annotated[str, Field(max_length=1024)]


class _TextObject(BaseModel):
    text: str


_OneText = str | _TextObject
_Texts = _OneText | Annotated[list[_OneText], Field(min_length=1)]


class _VectorRequest(RequestShape):
    model_config = ConfigDict(populate_by_name=True)
    model: _Name = ""
    user: _Name | None = None
    # vLLM's field: only requests of equal salt share cached prefixes
    cache_salt: _Name | None = None


class TruncatedRequest(_VectorRequest):
    """Fields of requests whose texts may be cut."""

    # Whether a text that is too long is cut at its end; otherwise it is an error.
    truncate: bool | None = None
    # vLLM's field: cut texts, or pairs of texts, to this number of tokens; -1: as many as fit
    truncate_prompt_tokens: int | None = Field(None, ge=-1)


class PairsRequest(TruncatedRequest):
    """Fields of requests for scores of a query and documents."""

    # tokens to which each query is cut, before the pair; 0: all of them are read
    max_tokens_per_query: int | None = Field(None, ge=0)
    # tokens to which each document is cut, before the pair; 0: all of them are read
    max_tokens_per_doc: int | None = Field(None, ge=0)


class EmbeddingRequest(TruncatedRequest):
    """The body of POST /v1/embeddings.

    `input` is a text, texts, token ids, or several lists of token ids.
    """

    input: Prompt
    dimensions: int | None = Field(None, ge=1, le=2**20)
    encoding_format: Literal["float", "base64"] | None = None
    # Name of the prompt in sentence-transformers' configuration that precedes each text.
    prompt_name: _Name | None = None


class ScoreRequest(PairsRequest):
    """The body of POST /v1/score: one query for all documents, or one query for each."""

    queries: Annotated[_Texts, Field(validation_alias=AliasChoices("text_1", "queries", "data_1"))]
    documents: Annotated[
        _Texts, Field(validation_alias=AliasChoices("text_2", "documents", "items", "data_2"))
    ]


class ClassifyRequest(TruncatedRequest):
    """The body of POST /classify: a text, or texts."""

    input: _Texts


class RerankRequest(PairsRequest):
    """The body of POST /rerank, /v1/rerank and /v2/rerank."""

    query: str
    documents: _Texts
    top_n: int | None = Field(None, ge=0)  # maximum number of ranked documents; None, 0: all
    return_documents: bool = True
    instruction: str | None = Field(
        None, max_length=2**16, validation_alias=AliasChoices("instruction", "instruct")
    )
