"""The paths of OpenAI's Responses API, under /v1/responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....errors import RequestError
from ...pipeline import Endpoint, Pipeline
from ...wire.errors import ApiError
from ...wire.framing import Framing, line, named_event
from ..described import COUNT, FLAG, TEXT, described, list_of, object_of, one_of
from ..openai import DONE
from ..routes import Routes
from . import compaction
from .local import LOCAL, Local
from .memory import Memory
from .page import LISTING, page
from .reply import OPEN_THOUGHTS, OPENAI_THOUGHTS
from .shapes import CompactRequest, CountRequest, ResponsesRequest
from .socket import OPENED
from .tenant import tenant
from .turn import Turn, ignored_fields, parse_count, parse_message, parse_request

PREFIX = "/v1/responses"
# Clients that send this header get the event names of the Open Responses specification.
VERSION_HEADER = "OpenResponses-Version"
_DONE = f"data: {DONE}\n\n".encode()  # the last event of every stream
RESPONSE = object_of(
    id=TEXT,
    object=one_of("response"),
    status=one_of("completed", "incomplete"),
    model=TEXT,
    output=list_of({"type": "object"}),
    usage={"type": "object"},
)


def _last_event(value: Mapping[str, Any]) -> bytes:
    return named_event(value) + _DONE


class Responses:
    """Handlers of /v1/responses.

    Handlers that are not coroutines run on threads, because they may parse long JSON.

    Args:
        pipeline: the pipeline that answers requests.
        memory: the store of responses.
    """

    def __init__(self, pipeline: Pipeline, memory: Memory) -> None:
        self._pipeline = pipeline
        self._memory = memory

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        one = f"{PREFIX}/{{id}}"
        return {
            ("POST", PREFIX): self.create,
            ("GET", PREFIX): self.socket,
            ("POST", f"{PREFIX}/input_tokens"): self.count,
            ("POST", f"{PREFIX}/compact"): self.compact,
            ("GET", one): self.retrieve,
            ("DELETE", one): self.delete,
            ("GET", f"{one}/input_items"): self.input_items,
            ("POST", f"{one}/cancel"): self.cancel,
        }

    @described(
        request=ResponsesRequest,
        answer=RESPONSE,
        chunk=object_of(type=TEXT, sequence_number=COUNT),
        last=DONE,
    )
    async def create(self, request: Request) -> Response:
        """Answers a list of items."""
        local: Local | None = request.scope.get(LOCAL)
        thoughts = OPEN_THOUGHTS if VERSION_HEADER in request.headers else OPENAI_THOUGHTS
        turn = Turn(self._memory, tenant(), local, thoughts)
        parse: Callable[[Any], ResponsesRequest] = parse_request
        framing = Framing(
            "text/event-stream",
            named_event,
            turn.failure,
            _last_event,
            _DONE,
            lambda: named_event(turn.keep_alive()),
        )
        if local is not None:
            parse = partial(parse_message, local)
            framing = Framing(
                "application/jsonl",
                line,
                turn.failure,
                keep_alive=lambda: line(turn.keep_alive()),
            )
        endpoint = Endpoint(parse, turn.plan, framing, ignored_fields)
        return await self._pipeline.answer(request, endpoint)

    @described(statuses=(101, 426))
    async def socket(self, request: Request) -> Response:
        """Opens a WebSocket; each message `response.create` is a request."""
        if request.scope.get(OPENED):
            return Response(status_code=101)
        raise ApiError(
            426,
            "GET /v1/responses opens a WebSocket; it takes the headers Connection: Upgrade and "
            "Upgrade: websocket. POST asks for a response",
            code="upgrade_required",
            headers={"Upgrade": "websocket", "Connection": "upgrade"},
        )

    @described(
        request=CountRequest,
        answer=object_of(object=one_of("response.input_tokens"), input_tokens=COUNT),
    )
    async def count(self, request: Request) -> Response:
        """Counts the tokens of items in the model's chat template."""
        turn = Turn(self._memory, tenant())
        return await self._pipeline.computed(request, parse_count, turn.count)

    @described(
        request=CompactRequest,
        answer=object_of(
            id=TEXT,
            object=one_of("response.compaction"),
            created_at=COUNT,
            output=list_of({"type": "object"}),
            usage={"type": "object"},
        ),
    )
    async def compact(self, request: Request) -> Response:
        """Replaces a conversation by a summary that the model writes."""
        compacting = compaction.Compaction(Turn(self._memory, tenant()))
        endpoint = Endpoint(
            compaction.parse_compact, compacting.plan, ignored=compaction.ignored_fields
        )
        return await self._pipeline.answer(request, endpoint)

    @described(answer=RESPONSE)
    def retrieve(self, request: Request, id: str) -> Response:
        """Returns a stored response."""
        if request.query_params.get("stream", "false") != "false":
            raise RequestError(
                "A complete response cannot be streamed again; send the request without stream",
                param="stream",
            )
        kept = self._memory.response(tenant(), id)
        return Response(kept.text, media_type="application/json")

    @described(answer=object_of(id=TEXT, object=one_of("response"), deleted=FLAG))
    def delete(self, id: str) -> Response:
        """Deletes a stored response."""
        self._memory.forget(tenant(), id)
        return JSONResponse({"id": id, "object": "response", "deleted": True})

    @described(answer=LISTING)
    def input_items(self, request: Request, id: str) -> Response:
        """Lists the items that a response answered, with those of earlier turns."""
        kept = self._memory.response(tenant(), id)
        return page(request, kept.items)

    @described()
    def cancel(self, id: str) -> Response:
        """Refuses: a response is complete before its id is known."""
        self._memory.response(tenant(), id)
        raise RequestError(
            f"The response {id!r} has ended; only background responses can be cancelled. A "
            "response that runs ends when its connection is closed",
            param="response_id",
            code="response_not_cancellable",
        )
