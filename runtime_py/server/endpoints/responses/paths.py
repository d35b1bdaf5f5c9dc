"""Paths of OpenAI's Responses."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....request.errors import RequestError
from ...pipeline import Endpoint, Pipeline
from ...wire.framing import Framing, named_event
from ..routes import Routes
from .memory import Memory
from .page import page
from .tenants import Tenants
from .turn import Turn, ignored_fields, parse_count, parse_request

PREFIX = "/v1/responses"


class Responses:
    """The handlers. Those that are no coroutines run on threads: they may read long JSON.

    Args:
        pipeline: answers.
        memory: what is kept.
        tenants: for whom.
    """

    def __init__(self, pipeline: Pipeline, memory: Memory, tenants: Tenants) -> None:
        self._pipeline = pipeline
        self._memory = memory
        self._tenants = tenants

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

    async def create(self, request: Request) -> Response:
        """Answers items."""
        turn = Turn(self._memory, self._tenants.of(request))
        framing = Framing("text/event-stream", named_event, error=turn.failure)
        endpoint = Endpoint(parse_request, turn.plan, framing, ignored_fields)
        return await self._pipeline.answer(request, endpoint)

    async def count(self, request: Request) -> Response:
        """Counts the tokens that items come to, in the model's template."""
        turn = Turn(self._memory, self._tenants.of(request))
        return await self._pipeline.computed(request, parse_count, turn.count)

    def retrieve(self, request: Request, id: str) -> Response:
        """A response that was kept."""
        if request.query_params.get("stream", "false") != "false":
            raise RequestError(
                "A response that is whole cannot be streamed again; ask without stream",
                param="stream",
            )
        kept = self._memory.response(self._tenants.of(request), id)
        return Response(kept.text, media_type="application/json")

    def delete(self, request: Request, id: str) -> Response:
        """Forgets a response."""
        tenant = self._tenants.of(request)
        self._memory.response(tenant, id)
        self._memory.responses.pop((tenant, id))
        return JSONResponse({"id": id, "object": "response", "deleted": True})

    def input_items(self, request: Request, id: str) -> Response:
        """The items that a response answered, those of earlier turns included."""
        kept = self._memory.response(self._tenants.of(request), id)
        return page(request, kept.items)

    def cancel(self, request: Request, id: str) -> Response:
        """Refuses: responses end before their id can be asked for."""
        self._memory.response(self._tenants.of(request), id)
        raise RequestError(
            f"The response {id!r} has ended; only background responses can be cancelled. A "
            "response that runs ends when its connection is closed",
            param="response_id",
            code="response_not_cancellable",
        )
