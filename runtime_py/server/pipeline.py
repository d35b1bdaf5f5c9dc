"""The path from a request's body to the response's bytes, which all protocols share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..answer.generation import Generation
from ..answer.reply import Reply, Streaming
from ..answer.vectors import VectorPlan
from ..async_engine import AsyncStream, attended, begin, collect, gather
from ..caller import Caller
from ..core.dispatcher import AsyncSink
from ..load.model import LoadedModel
from ..load.vectors import VectorModel
from ..request.plan import RequestPlan
from .guard.tenants import Asker
from .models import Models
from .observing.record import current
from .wire.errors import ApiError, shutting_down
from .wire.framing import OPENAI, Framing, headers_of, ignored_header
from .wire.json_body import encoded, encoded_blocks, parse_json
from .wire.streams import ClientGone, StreamedAnswer, WholeAnswer, while_connected

LONG_BODY = 2**16  # bytes from which a body is parsed on the thread for long requests
_SHORT_BODY = 2**12  # bytes up to which parsing on the event loop is faster than on a thread
CLIENT_GONE = 499  # nginx's status of a request whose client has gone; only the log shows it


class Named(Protocol):
    """A request, in any protocol, that names its model."""

    model: str  # name of the model; "": the server's default model


class Asked(Named, Protocol):
    """A request, in any protocol, for generated text."""

    stream: bool | None


A = TypeVar("A", bound=Asked)
M = TypeVar("M", bound=Named)
Planned = tuple[RequestPlan, Reply[Any, Any]]


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[A]):
    """The functions of a path that returns generated text.

    Attributes:
        parse: turns the body's JSON into a request; may raise RequestError.
        plan: returns the plan of the request and the writer of its response. It runs on a thread,
            and so does `parse` for long
            bodies.
        framing: the framing of streams.
        ignored: returns the names of fields without effect.
        keep_alive: returns the seconds that the model stays loaded afterwards; None: unchanged.
    """

    parse: Callable[[Any], A]
    plan: Callable[[LoadedModel, A, Caller], Planned]
    framing: Framing = OPENAI
    ignored: Callable[[A], Sequence[str]] = lambda _: ()
    keep_alive: Callable[[A], float | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class VectorEndpoint(Generic[M]):
    """The functions of a path for embeddings or scores; the fields are those of Endpoint."""

    parse: Callable[[Any], M]
    plan: Callable[[VectorModel, M, Caller], VectorPlan[Any]]
    ignored: Callable[[M], Sequence[str]] = lambda _: ()
    keep_alive: Callable[[M], float | None] = lambda _: None


class Pipeline:
    """Answers requests on the models of a server."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self._long_requests = ThreadPoolExecutor(1, "wherry-long-request")

    async def answer(self, http: Request, endpoint: Endpoint[A]) -> Response:
        """Answer a request; a stream keeps its model loaded until it ends.

        Raises:
            ApiError: no model has the name, or the server shuts down.
            RequestError: the request cannot be served.
            BusyError: the queue is full.
        """
        body = await body_of(http)
        async with AsyncExitStack() as held:
            try:
                begun = await while_connected(http.receive, self._begin(body, endpoint, held))
                return await _respond(http, endpoint, held, *begun)
            except ClientGone:
                current().error = "client_gone"
                return Response(status_code=CLIENT_GONE)

    async def _begin(
        self, body: bytes, endpoint: Endpoint[A], held: AsyncExitStack
    ) -> tuple[A, Generation, AsyncSink, Reply[Any, Any]]:
        request, loaded = await self._leased(body, endpoint.parse, held, endpoint.keep_alive)
        asker = Asker.of(current())

        def plan(caller: Caller) -> Planned:
            plan, reply = endpoint.plan(loaded, request, caller)
            return replace(plan, jobs=asker.owning(plan.jobs)), reply

        return request, *await begin(loaded, plan, self._lane(body))

    async def numbers(self, http: Request, endpoint: VectorEndpoint[M]) -> Response:
        """Answer a request for embeddings or scores; errors as in `answer`."""
        body = await body_of(http)
        async with AsyncExitStack() as held:
            try:
                return await while_connected(http.receive, self._gather(body, endpoint, held))
            except ClientGone:
                current().error = "client_gone"
                return Response(status_code=CLIENT_GONE)
            except asyncio.CancelledError as e:  # the server shuts down and its drain time is over
                raise shutting_down() from e

    async def _gather(
        self, body: bytes, endpoint: VectorEndpoint[M], held: AsyncExitStack
    ) -> Response:
        request, loaded = await self._leased(body, endpoint.parse, held, endpoint.keep_alive)
        record = current()
        record.model = request.model
        asker = Asker.of(record)

        def plan(caller: Caller) -> VectorPlan[Any]:
            made = endpoint.plan(loaded.vectors, request, caller)
            record.tokens_read = made.tokens
            return replace(made, jobs=asker.owning(made.jobs))

        answer = await gather(loaded, plan, self._lane(body))
        content = await asyncio.to_thread(lambda: encoded(answer.dumped()))
        headers = ignored_header(endpoint.ignored(request))
        return Response(content, media_type="application/json", headers=headers)

    async def computed(
        self,
        http: Request,
        parse: Callable[[Any], M],
        work: Callable[[LoadedModel, M, Caller], Any],
    ) -> Response:
        """Answer a request that needs a model's tokenizer, but not its core.

        Args:
            http: the request.
            parse: turns the body's JSON into a request; may raise RequestError.
            work: returns the response's JSON; runs on a thread.

        Raises:
            ApiError: no model has the name.
            RequestError: the request cannot be served.
        """
        body = await body_of(http)
        async with AsyncExitStack() as held:

            async def compute() -> bytes:
                request, loaded = await self._leased(body, parse, held)
                current().model = request.model
                return await attended(
                    lambda caller: encoded(work(loaded, request, caller)), self._lane(body)
                )

            try:
                content = await while_connected(http.receive, compute())
            except ClientGone:
                current().error = "client_gone"
                return Response(status_code=CLIENT_GONE)
            except asyncio.CancelledError as e:  # the server shuts down and its drain time is over
                raise shutting_down() from e
        return Response(content, media_type="application/json")

    async def _leased(
        self,
        body: bytes,
        parse: Callable[[Any], M],
        held: AsyncExitStack,
        keep_alive: Callable[[M], float | None] = lambda _: None,
    ) -> tuple[M, LoadedModel]:
        """Parse the request and lease its model until `held` is closed."""

        def parsed() -> M:
            return parse(parse_json(body))

        if len(body) <= _SHORT_BODY:
            request = parsed()
        else:
            loop = asyncio.get_running_loop()
            request = await loop.run_in_executor(self._lane(body), parsed)
        lease = self.models.lease(request.model, keep_alive(request))
        served = await held.enter_async_context(lease)
        request.model = served.name
        return request, served.loaded

    def _lane(self, body: bytes) -> ThreadPoolExecutor | None:
        # Long requests are parsed one at a time, because parsing holds the GIL.
        return self._long_requests if len(body) > LONG_BODY else None


async def _respond(
    http: Request,
    endpoint: Endpoint[A],
    held: AsyncExitStack,
    request: A,
    generation: Generation,
    sink: AsyncSink,
    reply: Reply[Any, Any],
) -> Response:
    current().begun(request.model, generation, stream=bool(request.stream))
    headers = headers_of(endpoint.ignored(request), generation.plan.adapted)
    if request.stream:
        stream = AsyncStream(generation, sink, Streaming(generation, reply))
        return StreamedAnswer(stream, endpoint.framing, headers, held.pop_all())
    try:
        answer = await while_connected(http.receive, collect(generation, sink, reply))
        blocks = await asyncio.to_thread(lambda: [*encoded_blocks(answer.whole().dumped())])
    except asyncio.CancelledError as e:  # the server shuts down and its drain time is over
        raise shutting_down() from e
    finally:
        generation.close()
    return WholeAnswer(blocks, headers)


async def body_of(http: Request) -> bytes:
    """Return the whole body of a request.

    Raises:
        ApiError: the client has gone.
    """
    try:
        return await http.body()  # Starlette caches the body, so a second call returns it again
    except ClientDisconnect as e:
        raise ApiError(CLIENT_GONE, "The client has gone away") from e
