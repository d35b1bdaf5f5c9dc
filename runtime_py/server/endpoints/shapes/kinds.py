"""The types of request fields; fields.py says which field has which type."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .counts import at_most

MAX_MESSAGES = 4096
MAX_PARTS = 4096  # maximum number of parts in one message's content
MAX_BIASES = 4096  # maximum number of tokens in logit_bias
MAX_ALLOWED = 2**18  # maximum number of tokens in allowed_token_ids; vocabularies have fewer

TokenId = Annotated[int, Field(ge=0, lt=2**31)]
ShortText = Annotated[str, Field(min_length=1, max_length=1024)]
StopString = Annotated[str, Field(max_length=1024)]

Biases = Annotated[
    dict[TokenId, Annotated[float, Field(ge=-100, le=100)]] | None, at_most(MAX_BIASES, "tokens")
]
TokenIds = Annotated[list[TokenId] | None, Field(min_length=1), at_most(MAX_ALLOWED, "tokens")]
