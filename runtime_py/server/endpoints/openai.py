"""The paths of OpenAI's API that list models and generate text."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...answers import ChatCompletion, ChatCompletionChunk, Completion
from ..models import Models, unknown_model
from ..observing.observer import ANTHROPIC_VERSION
from ..pipeline import Pipeline, endpoint_of
from .anthropic import models as anthropic
from .described import COUNT, TEXT, described, list_of, object_of, one_of
from .routes import Routes
from .shapes import openai as shapes

CHAT, COMPLETION = endpoint_of("chat"), endpoint_of("completion")
DONE = "[DONE]"
LISTED = object_of(id=TEXT, object=one_of("model"), created=COUNT, owned_by=TEXT)


class OpenAI:
    """Handlers of OpenAI's paths for models, chats and completions.

    Args:
        pipeline: the pipeline that answers requests.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._models: Models = pipeline.models

    def routes(self) -> Routes:
        """Return the handler of each method and path.

        Each path exists also without the version, for clients whose base URL lacks it.
        """
        versions = ("/v1", "")
        return {
            **{("GET", f"{version}/models"): self.models for version in versions},
            **{("GET", f"{version}/models/{{name:path}}"): self.model for version in versions},
            **{("POST", f"{version}/chat/completions"): self.chat for version in versions},
            **{("POST", f"{version}/completions"): self.completion for version in versions},
        }

    @described(answer=object_of(object=one_of("list"), data=list_of(LISTED)))
    async def models(self, request: Request) -> Response:
        """Lists the models; in Anthropic's shape if the request has `anthropic-version`."""
        if ANTHROPIC_VERSION in request.headers:
            return JSONResponse(anthropic.listing(self._models.listed()))
        data = [m.described() for m in self._models.listed()]
        return JSONResponse({"object": "list", "data": data})

    @described(answer=LISTED)
    async def model(self, request: Request, name: str) -> Response:
        """Describes a model; in Anthropic's shape if the request has `anthropic-version`."""
        listed = self._models.listed()
        for model in listed:
            if model.name == name and ANTHROPIC_VERSION in request.headers:
                return JSONResponse(anthropic.described(model))
            if model.name == name:
                return JSONResponse(model.described())
        raise unknown_model(name, listed)

    @described(request=shapes.CHAT, answer=ChatCompletion, chunk=ChatCompletionChunk, last=DONE)
    async def chat(self, request: Request) -> Response:
        """Answers the messages of a chat."""
        return await self._pipeline.answer(request, CHAT)

    @described(request=shapes.COMPLETION, answer=Completion, chunk=Completion, last=DONE)
    async def completion(self, request: Request) -> Response:
        """Continues one or several prompts."""
        return await self._pipeline.answer(request, COMPLETION)
