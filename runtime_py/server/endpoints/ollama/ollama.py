"""The endpoints of Ollama's API that generate text, /api/chat and /api/generate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....caller import Caller
from ....host.request import HostRequest
from ....load.model import LoadedModel
from ...models import Models
from ...pipeline import CLIENT_GONE, Endpoint, Pipeline, body_of
from ...wire.errors import ApiError, add_shape
from ...wire.framing import IGNORED_HEADER, Framing, line
from ...wire.json_body import parse_json
from ...wire.streams import ClientGone, while_connected
from ..described import described
from ..parts import IN_PARTS, Translated
from ..routes import Routes
from . import requests
from .abilities import thinks
from .answers import CHAT_SCHEMA, GENERATE_SCHEMA, Reply, without_prompt
from .options import without_effect
from .parsing import validated
from .requests import AnswerFields, OllamaChatRequest, OllamaGenerateRequest, OllamaRequest

_SMALL = 2**12  # bytes up to which a body may be a request that has no prompt


def error_shape(error: ApiError) -> dict[str, Any]:
    """Return the JSON of an error in the shape of Ollama's API."""
    if (overflow := error.overflow) is not None:
        text = f"prompt too long; exceeded max context length by {overflow.excess} tokens"
        return {"error": text}
    return {"error": str(error.detail)}


FRAMING = Framing("application/x-ndjson", line, error=error_shape)
add_shape("/api/", error_shape)


def plan(
    loaded: LoadedModel, request: OllamaRequest, caller: Caller
) -> tuple[HostRequest, Translated]:
    """Return the request for C++, and the writer of its response."""
    planned = time.perf_counter()
    request.model_context = loaded.context
    if request.fields.think and not thinks(loaded.template):
        request.ignored.append("think")
    reply = Reply(
        request.name or request.model,
        chat=isinstance(request.fields, OllamaChatRequest),
        started=request.started,
        planned=planned,
        logprobs=bool(request.fields.logprobs),
    )
    options = {
        **IN_PARTS,
        # of prompt and output, as in Ollama
        "context": min(request.context or loaded.context, loaded.context),
        "context_field": "options.num_ctx",
        "max_tokens": request.most,
    }
    if request.chat and (request.completion is None or loaded.template):
        return HostRequest("chat", request.chat, options), Translated(reply)
    assert request.completion
    return HostRequest("completion", request.completion, options), Translated(reply)


def _ignored(request: OllamaRequest, ignored: Sequence[str]) -> list[str]:
    return request.ignored + without_effect(request.fields.options or {}, request.model_context)


def _endpoint(parse: requests.Parse) -> Endpoint[OllamaRequest]:
    return Endpoint(
        parse, plan, FRAMING, _ignored, keep_alive=lambda request: request.fields.keep_alive
    )


CHAT, GENERATE = _endpoint(requests.chat), _endpoint(requests.generate)


class Ollama:
    """Handlers of /api/chat and /api/generate.

    Args:
        pipeline: the pipeline that answers requests.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._models: Models = pipeline.models

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {
            ("POST", "/api/chat"): self.chat,
            ("POST", "/api/generate"): self.generate,
        }

    @described(
        request=OllamaChatRequest, answer=CHAT_SCHEMA, chunk=CHAT_SCHEMA, stream=FRAMING.media_type
    )
    async def chat(self, request: Request) -> Response:
        """Answers messages; without messages it loads or unloads the model."""
        return await self._answer(request, CHAT, OllamaChatRequest)

    @described(
        request=OllamaGenerateRequest,
        answer=GENERATE_SCHEMA,
        chunk=GENERATE_SCHEMA,
        stream=FRAMING.media_type,
    )
    async def generate(self, request: Request) -> Response:
        """Answers a prompt; without a prompt it loads or unloads the model."""
        return await self._answer(request, GENERATE, OllamaGenerateRequest)

    async def _answer(
        self, request: Request, endpoint: Endpoint[OllamaRequest], kind: type[AnswerFields]
    ) -> Response:
        body = await body_of(request)
        if len(body) <= _SMALL:
            fields = validated(kind, parse_json(body))
            if requests.asks_nothing(fields):
                try:
                    return await while_connected(request.receive, self._load(fields))
                except ClientGone:
                    return Response(status_code=CLIENT_GONE)
        return await self._pipeline.answer(request, endpoint)

    async def _load(self, fields: AnswerFields) -> Response:
        """Return the response of a load; if `keep_alive` is 0, the model is unloaded instead."""
        name, stays = fields.requested, fields.keep_alive
        response = partial(without_prompt, name, chat=isinstance(fields, OllamaChatRequest))
        if stays == 0:
            goes = self._models.unload(name)
            headers = {} if goes else {IGNORED_HEADER: "keep_alive"}
            return JSONResponse(response(reason="unload"), headers=headers)
        async with self._models.lease(name, stays):
            return JSONResponse(response(reason="load"))
