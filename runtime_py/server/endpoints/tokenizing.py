"""The endpoints /tokenize and /detokenize, in the shapes of vLLM and of llama.cpp.

The request's fields select the shape: `prompt` and `messages` are vLLM's, `content` is llama.cpp's.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from ...caller import Caller
from ...errors import RequestError
from ...load.model import LoadedModel
from ...text.tokenizer import Tokenizer
from ..pipeline import Pipeline
from .described import TEXT, described, object_of
from .routes import Routes
from .shapes.counts import at_most
from .shapes.kinds import TokenId
from .shapes.requests import refuse, validated

MAX_IDS = 2**18  # maximum number of token ids in one request to /detokenize
_TEXTS = ("prompt", "content", "messages")
_OF_CHATS = (
    "messages",
    "tools",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
)


class TokenizeRequest(BaseModel):
    """The body of POST /tokenize."""

    model_config = ConfigDict(extra="allow")

    model: str = Field("", max_length=1024)
    prompt: str | None = None
    content: str | None = None
    # messages of a chat; the other fields of a chat are accepted, too
    messages: list[Any] | None = None
    # whether special tokens are added (vLLM's name); None: for a prompt, not for messages
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None
    # whether special tokens are added (llama.cpp's name); None: they are not
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None


class DetokenizeRequest(BaseModel):
    """The body of POST /detokenize."""

    model_config = ConfigDict(extra="allow")

    model: str = Field("", max_length=1024)
    tokens: Annotated[list[TokenId], Field(fail_fast=True), at_most(MAX_IDS, "tokens")]


class Tokenizing:
    """Handlers of /tokenize and /detokenize.

    Args:
        pipeline: the pipeline, which leases models and runs threads.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {
            ("POST", "/tokenize"): self.tokenize,
            ("POST", "/detokenize"): self.detokenize,
        }

    @described(request=TokenizeRequest, answer={"type": "object", "required": ["tokens"]})
    async def tokenize(self, request: Request) -> Response:
        """Tokenizes a text, or messages in the model's chat template."""
        return await self._pipeline.computed(request, _parse, _tokenized)

    @described(request=DetokenizeRequest, answer=object_of(prompt=TEXT, content=TEXT))
    async def detokenize(self, request: Request) -> Response:
        """Writes the text of tokens, with special ones."""
        return await self._pipeline.computed(request, _parse_tokens, _text)


def _parse(fields: Any) -> TokenizeRequest:
    request = validated(TokenizeRequest, fields)
    given = [name for name in _TEXTS if getattr(request, name) is not None]
    if len(given) != 1:
        named = " and ".join(given) or "none of them"
        raise RequestError(
            f"/tokenize takes one of {', '.join(_TEXTS)}; the request has {named}",
            param=given[1] if given else "prompt",
        )
    if request.parse_special is False:
        raise RequestError(
            "parse_special false is not supported: the names of special tokens are special",
            param="parse_special",
            code="unsupported_parameter",
        )
    refuse(request, {"chat_template": ()})
    return request


def _parse_tokens(fields: Any) -> DetokenizeRequest:
    return validated(DetokenizeRequest, fields)


def _tokenized(loaded: LoadedModel, request: TokenizeRequest, caller: Caller) -> dict[str, Any]:
    if request.messages is not None:
        special = bool(request.add_special_tokens)
        fields = {name: v for name in _OF_CHATS if (v := getattr(request, name, None)) is not None}
        ids = loaded.prompt(fields, caller, add_special_tokens=special)
    elif request.content is not None:
        special = bool(request.add_special)
        ids = loaded.encoded(request.content, caller, "content", add_special_tokens=special)
        pieces = request.with_pieces
        return {"tokens": [_piece(loaded.tokenizer, i) for i in ids] if pieces else ids}
    else:
        special = request.add_special_tokens is not False
        text = request.prompt or ""
        ids = loaded.encoded(text, caller, "prompt", add_special_tokens=special)
    names = [loaded.tokenizer.backend.id_to_token(i) for i in ids]
    return {
        "count": len(ids),
        "max_model_len": loaded.context,
        "tokens": ids,
        "token_strs": names if request.return_token_strs else None,
    }


def _piece(tokenizer: Tokenizer, token: int) -> dict[str, Any]:
    """Return a token in llama.cpp's shape: a text, or bytes if it is a partial character."""
    piece = tokenizer.piece(token)
    try:
        return {"id": token, "piece": piece.decode()}
    except UnicodeDecodeError:
        return {"id": token, "piece": list(piece)}


def _text(loaded: LoadedModel, request: DetokenizeRequest, caller: Caller) -> dict[str, Any]:
    """Return the text under two names: vLLM's clients read `prompt`, llama.cpp's `content`."""
    limit = loaded.vocab_size
    if (worst := max(request.tokens, default=0)) >= limit:
        raise RequestError(f"tokens holds {worst}; ids go from 0 to {limit - 1}", param="tokens")
    caller.check()
    text = loaded.tokenizer.decode(request.tokens, skip_special_tokens=False)
    return {"prompt": text, "content": text}
