"""The paths of Anthropic's API: /v1/messages and /v1/messages/count_tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from ....caller import Caller
from ....host.request import HostRequest
from ....load.model import LoadedModel
from ...pipeline import Endpoint, Pipeline
from ...wire.errors import add_shape
from ...wire.framing import Framing, named_event
from ..described import COUNT, TEXT, described, list_of, object_of, one_of
from ..parts import IN_PARTS, Translated
from ..routes import Routes
from ..shapes.requests import not_known
from . import errors
from .reply import MessageReply
from .shapes import CountRequest, MessagesRequest
from .translate import chat_fields, parse_count, parse_messages

PREFIX = "/v1/messages"
MESSAGE = object_of(
    id=TEXT,
    type=one_of("message"),
    role=one_of("assistant"),
    model=TEXT,
    content=list_of(object_of(type=TEXT)),
    stop_reason=TEXT,
    usage=object_of(input_tokens=COUNT, output_tokens=COUNT),
)
FRAMING = Framing(
    "text/event-stream",
    named_event,
    error=errors.body,
    keep_alive=lambda: named_event({"type": "ping"}),
)
add_shape(PREFIX, errors.body)


class Anthropic:
    """Handlers of the paths of Anthropic's API.

    Args:
        pipeline: the pipeline that answers requests.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {
            ("POST", PREFIX): self.messages,
            ("POST", f"{PREFIX}/count_tokens"): self.count_tokens,
        }

    @described(request=MessagesRequest, answer=MESSAGE, chunk=object_of(type=TEXT))
    async def messages(self, request: Request) -> Response:
        """Answers the messages of a chat."""
        return await self._pipeline.answer(request, MESSAGES)

    @described(request=CountRequest, answer=object_of(input_tokens=COUNT))
    async def count_tokens(self, request: Request) -> Response:
        """Counts the tokens of messages in the model's chat template."""
        return await self._pipeline.computed(request, parse_count, _count)


def _plan(
    loaded: LoadedModel, request: MessagesRequest, caller: Caller
) -> tuple[HostRequest, Translated]:
    omit = request.thinking is not None and request.thinking.display == "omitted"
    reply = MessageReply(request.model, max_tokens=request.max_tokens, omit=omit)
    options = {**IN_PARTS, "max_tokens": request.max_tokens}
    return HostRequest("chat", chat_fields(request), options), Translated(reply)


def _count(loaded: LoadedModel, request: CountRequest, caller: Caller) -> dict[str, Any]:
    return {"input_tokens": len(loaded.prompt(chat_fields(request), caller))}


def _ignored(request: MessagesRequest, ignored: Sequence[str]) -> list[str]:
    names = [*not_known(request), *request.unused(ignored)]
    if request.thinking:
        names += [f"thinking.{name}" for name in not_known(request.thinking)]
        # a model here writes no summary of its thinking
        names += ["thinking.display"] * (request.thinking.display == "summarized")
    for where, shapes in (
        ("messages", [b for turn in request.messages for b in _blocks(turn.content)]),
        ("system", _blocks(request.system)),
        ("tools", request.tools or []),
    ):
        names += {f"{where}.{name}" for shape in shapes for name in not_known(shape)}
    # tools are read as they are, whether they are to be searched or not
    return sorted(set(names) - {"tools.defer_loading"})


def _blocks(content: str | Sequence[BaseModel] | None) -> Sequence[BaseModel]:
    return [] if content is None or isinstance(content, str) else content


MESSAGES = Endpoint(parse_messages, _plan, FRAMING, _ignored)
