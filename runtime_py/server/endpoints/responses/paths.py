"""Paths of OpenAI's Responses."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....request.errors import RequestError
from ...pipeline import Endpoint, Pipeline
from ...wire.framing import Framing, named_event
from ..described import COUNT, FLAG, TEXT, described, list_of, object_of, one_of
from ..routes import Routes
from .memory import Memory
from .page import LISTING, page
from .shapes import CountRequest, ResponsesRequest
from .tenant import tenant
from .turn import Turn, ignored_fields, parse_count, parse_request

PREFIX = "/v1/responses"
RESPONSE = object_of(
    id=TEXT,
    object=one_of("response"),
    status=one_of("completed", "incomplete"),
    model=TEXT,
    output=list_of({"type": "object"}),
    usage={"type": "object"},
)


class Responses:
    """The handlers. Those that are no coroutines run on threads: they may read long JSON.

    Args:
        pipeline: answers.
        memory: what is kept.
    """

    def __init__(self, pipeline: Pipeline, memory: Memory) -> None:
        self._pipeline = pipeline
        self._memory = memory

    def routes(self) -> Routes:
        """Path -> handler."""
        one = f"{PREFIX}/{{id}}"
        return {
            ("POST", PREFIX): self.create,
            ("POST", f"{PREFIX}/input_tokens"): self.count,
            ("GET", one): self.retrieve,
            ("DELETE", one): self.delete,
            ("GET", f"{one}/input_items"): self.input_items,
            ("POST", f"{one}/cancel"): self.cancel,
        }

    @described(
        request=ResponsesRequest,
        answer=RESPONSE,
        chunk=object_of(type=TEXT, sequence_number=COUNT),
    )
    async def create(self, request: Request) -> Response:
        """Answers items."""
        turn = Turn(self._memory, tenant())
        framing = Framing("text/event-stream", named_event, error=turn.failure)
        endpoint = Endpoint(parse_request, turn.plan, framing, ignored_fields)
        return await self._pipeline.answer(request, endpoint)

    @described(
        request=CountRequest,
        answer=object_of(object=one_of("response.input_tokens"), input_tokens=COUNT),
    )
    async def count(self, request: Request) -> Response:
        """Counts the tokens that items come to, in the model's template."""
        turn = Turn(self._memory, tenant())
        return await self._pipeline.computed(request, parse_count, turn.count)

    @described(answer=RESPONSE)
    def retrieve(self, request: Request, id: str) -> Response:
        """A response that was kept."""
        if request.query_params.get("stream", "false") != "false":
            raise RequestError(
                "A response that is whole cannot be streamed again; ask without stream",
                param="stream",
            )
        kept = self._memory.response(tenant(), id)
        return Response(kept.text, media_type="application/json")

    @described(answer=object_of(id=TEXT, object=one_of("response"), deleted=FLAG))
    def delete(self, id: str) -> Response:
        """Forgets a response."""
        self._memory.forget(tenant(), id)
        return JSONResponse({"id": id, "object": "response", "deleted": True})

    @described(answer=LISTING)
    def input_items(self, request: Request, id: str) -> Response:
        """The items that a response answered, those of earlier turns included."""
        kept = self._memory.response(tenant(), id)
        return page(request, kept.items)

    @described()
    def cancel(self, id: str) -> Response:
        """Refuses: responses end before their id can be asked for."""
        self._memory.response(tenant(), id)
        raise RequestError(
            f"The response {id!r} has ended; only background responses can be cancelled. A "
            "response that runs ends when its connection is closed",
            param="response_id",
            code="response_not_cancellable",
        )
