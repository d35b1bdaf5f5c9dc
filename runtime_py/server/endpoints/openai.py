"""OpenAI's paths."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...load.model import LoadedModel
from ...request.shapes import ChatRequest, CompletionRequest, ignored, parse
from ..models import Models, unknown_model
from ..pipeline import Endpoint, Pipeline
from .routes import Routes

CHAT = Endpoint(partial(parse, ChatRequest), LoadedModel.chat, ignored=ignored)
COMPLETION = Endpoint(partial(parse, CompletionRequest), LoadedModel.completion, ignored=ignored)


class OpenAI:
    """The handlers.

    Args:
        pipeline: answers.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._models: Models = pipeline.models

    def routes(self) -> Routes:
        """Path -> handler."""
        return {
            ("GET", "/v1/models"): self.models,
            ("GET", "/v1/models/{name:path}"): self.model,
            ("POST", "/v1/chat/completions"): self.chat,
            ("POST", "/v1/completions"): self.completion,
        }

    async def models(self) -> Response:
        """Lists what is served."""
        data = [m.described() for m in self._models.listed()]
        return JSONResponse({"object": "list", "data": data})

    async def model(self, name: str) -> Response:
        """Describes one model."""
        listed = self._models.listed()
        for model in listed:
            if model.name == name:
                return JSONResponse(model.described())
        raise unknown_model(name, listed)

    async def chat(self, request: Request) -> Response:
        """Answers messages."""
        return await self._pipeline.answer(request, CHAT)

    async def completion(self, request: Request) -> Response:
        """Continues prompts."""
        return await self._pipeline.answer(request, COMPLETION)
