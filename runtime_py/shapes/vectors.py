"""Requests that generate no text: embeddings, scores, classes, rankings (OpenAI, vLLM, Cohere)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
)
from pydantic_core import PydanticCustomError

from .counts import at_most
from .kinds import PromptJson, RequestShape, prompt_value

MAX_INPUTS = 2048  # maximum number of texts in one request, as in OpenAI's API

_Name = Annotated[str, Field(max_length=1024)]


def _as_texts(value: Any) -> Any:
    """Return a list of texts, from one text or from Cohere's documents, which may be objects."""
    if not isinstance(value, list):
        value = [value]
    texts = [v.get("text") if isinstance(v, dict) else v for v in value]
    wrong = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if wrong is not None:
        raise PydanticCustomError(
            "texts", f"item {wrong} is neither a text nor an object with a text"
        )
    return texts


class _TextObject(BaseModel):
    text: str


_OneText = str | _TextObject
_Texts = Annotated[
    list[str],
    Field(min_length=1),
    BeforeValidator(_as_texts, json_schema_input_type=_OneText | list[_OneText]),
    at_most(MAX_INPUTS, "texts"),
]


class _VectorRequest(RequestShape):
    model_config = ConfigDict(populate_by_name=True)
    model: _Name = ""
    user: _Name | None = None
    # vLLM's field: only requests of equal salt share cached prefixes
    cache_salt: _Name | None = None


class EmbeddingRequest(_VectorRequest):
    """The body of POST /v1/embeddings.

    `input` is a text, texts, token ids, or several lists of token ids.
    """

    input: Annotated[
        str | list[str] | list[int] | list[list[int]],
        PlainValidator(prompt_value, json_schema_input_type=PromptJson),
    ]
    dimensions: int | None = Field(None, ge=1, le=2**20)
    encoding_format: Literal["float", "base64"] | None = None
    # Name of the prompt in sentence-transformers' configuration that precedes each text.
    prompt_name: _Name | None = None
    # Whether a text that is too long is cut at its end; otherwise it is an error.
    truncate: bool | None = None


class ScoreRequest(_VectorRequest):
    """The body of POST /v1/score: one query for all documents, or one query for each."""

    queries: Annotated[_Texts, Field(validation_alias=AliasChoices("text_1", "queries", "data_1"))]
    documents: Annotated[
        _Texts, Field(validation_alias=AliasChoices("text_2", "documents", "items", "data_2"))
    ]


class ClassifyRequest(_VectorRequest):
    """The body of POST /classify: a text, or texts."""

    input: _Texts


class RerankRequest(_VectorRequest):
    """The body of POST /v1/rerank and /v2/rerank."""

    query: str
    documents: _Texts
    top_n: int | None = Field(None, ge=0)  # maximum number of ranked documents; None, 0: all
    return_documents: bool = True
    instruction: str | None = Field(
        None, max_length=2**16, validation_alias=AliasChoices("instruction", "instruct")
    )
