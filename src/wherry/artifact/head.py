r"""The output head of a model that generates no text: embeddings, scores or classes.

`wherry-head.json` in folders of weights and compiled folders has it. A model without the file
generates text; its embeddings are the normalized states of last tokens, without prompts.

    {"kind": "embedding", "pooling": "last", "normalize": true, "max_tokens": 32768,
     "prompts": {"query": "Instruct: ...\nQuery:"}, "default_prompt": null}
    {"kind": "score", "yes": 9693, "no": 2152, "prompts": {}, "default_prompt": null}
    {"kind": "class", "labels": ["negative", "positive"], "activation": "softmax", "separator": 102}

The compiled library of an encoder computes the vector: pooling, the linears after it ("dense"), or
the logits of classes. The host normalizes it, or computes probabilities.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, TypeAdapter, ValidationError

from wherry.base.json_file import parse_object
from wherry.errors import ModelError, listing

HEAD = "wherry-head.json"
_STRICT = ConfigDict(strict=True, extra="forbid")
_TokenId = Annotated[int, Field(ge=0, lt=2**31)]
_Width = Annotated[int, Field(ge=1, le=2**20)]
Pooling = Literal["cls", "mean", "max", "last", "mean_sqrt_len", "weightedmean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    prompts: dict[str, str] = field(default_factory=dict)  # name -> prompt, which precedes a text
    default_prompt: str | None = None  # name of the prompt for texts without a named one

    def __post_init__(self) -> None:
        if self.default_prompt is not None and self.default_prompt not in self.prompts:
            raise ValueError(f"default_prompt is {self.default_prompt!r}, of no prompt")


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseLayer:
    """A linear after pooling, with an activation."""

    inputs: _Width
    outputs: _Width
    bias: bool = True
    activation: Literal["identity", "tanh", "relu", "gelu", "silu"] = "identity"
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingHead(_Head):
    """Head that returns a vector for a text."""

    kind: Literal["embedding"] = "embedding"
    # Which rows the vector is made of; several: their vectors are concatenated. Decoders have
    # "last" alone: only the last token has attended to the whole text.
    pooling: Pooling | Annotated[tuple[Pooling, ...], Field(min_length=2, max_length=6)] = "last"
    dense: tuple[DenseLayer, ...] = ()  # after pooling
    normalize: bool = True  # whether vectors are scaled to length 1
    # tokens of a text at most; None: the model's context
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreHead(_Head):
    """Head that scores a query and a document: logit of the token `yes` minus that of `no`."""

    yes: _TokenId
    no: _TokenId
    kind: Literal["score"] = "score"
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassHead(_Head):
    """Head that returns the logits of classes for a text, or for a pair of texts.

    With a single class the logit says how well a document matches a query.
    """

    labels: Annotated[tuple[str, ...], Field(min_length=1)]
    activation: Literal["softmax", "sigmoid", "identity"] = "softmax"  # of logits
    # Token after which the second text of a pair begins, for models with segments.
    separator: _TokenId | None = None
    kind: Literal["class"] = "class"
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT


Head = EmbeddingHead | ScoreHead | ClassHead
_HEAD: TypeAdapter[Head] = TypeAdapter(Annotated[Head, Discriminator("kind")])


def to_json(head: Head) -> str:
    """Return the content of the file `wherry-head.json`."""
    return json.dumps(_HEAD.dump_python(head), indent=2, sort_keys=True) + "\n"


def read_head(folder: Path) -> Head | None:
    """Read `folder/wherry-head.json`; None: the folder has no such file.

    Raises:
        ModelError: the file is damaged.
    """
    path = folder / HEAD
    if not path.is_file():
        return None
    try:
        return _HEAD.validate_json(json.dumps(parse_object(path.read_bytes())))
    except ValidationError as e:
        problems = (f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in e.errors())
        raise ModelError(f"{path} is damaged:\n{listing(problems)}") from e
    except (OSError, ValueError) as e:
        raise ModelError(f"{path} cannot be read: {e}.") from e
