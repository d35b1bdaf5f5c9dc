"""The path from a request's body to the response's bytes, which all protocols share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..async_engine import AsyncStream, attended, begin, collect
from ..caller import Caller
from ..host.request import HostRequest, Task, checked
from ..host.running import Running
from ..host.sinks import AsyncSink
from ..host.turns import turns_of
from ..load.model import LoadedModel
from .models import Models
from .observing.record import current
from .wire.errors import ApiError, shutting_down
from .wire.framing import OPENAI, Chunk, Framing, headers_of
from .wire.json_body import blocks_of, encoded, parse_json
from .wire.media import MediaFetcher
from .wire.streams import ClientGone, FullAnswer, StreamedAnswer, while_connected

LONG_BODY = 2**16  # bytes from which a body is parsed on the thread for long requests
_SHORT_BODY = 2**12  # bytes up to which parsing on the event loop is faster than on a thread
_START_WORK = 64  # what the start of a request takes of the event loop, in units of `Turns`
CLIENT_GONE = 499  # nginx's status of a request whose client has gone; only the log shows it


class Named(Protocol):
    """A request, in any protocol, that names its model."""

    model: str  # name of the model; "": the server's default model


class AnswerRequest(Named, Protocol):
    """A request, in any protocol, for a model's answer."""

    stream: bool | None


A = TypeVar("A", bound=AnswerRequest)
M = TypeVar("M", bound=Named)
T = TypeVar("T")


class Writer(Protocol):
    """Writes the response to one request in its protocol, out of the JSON that C++ gives."""

    def opening(self, running: Running) -> Sequence[Chunk]:
        """Note the opened request, and return the chunks that a stream sends before C++'s."""

    def chunks(self, data: bytes) -> Sequence[Chunk]:
        """Return the chunks of a stream for one chunk of C++."""

    def full_response(self, data: bytes) -> Iterator[bytes]:
        """Yield the JSON of a response without streaming in blocks."""


class AsWritten:
    """Passes on what C++ writes, which has OpenAI's shapes."""

    def opening(self, running: Running) -> Sequence[Chunk]:
        """Return no chunks; implements `Writer.opening`."""
        return ()

    def chunks(self, data: bytes) -> Sequence[Chunk]:
        """Return the chunk itself; implements `Writer.chunks`."""
        return (data,)

    def full_response(self, data: bytes) -> Iterator[bytes]:
        """Yield the response itself; implements `Writer.full_response`."""
        return blocks_of(data)


@dataclass(slots=True)
class Body:
    """The body of a request in OpenAI's shapes, which C++ reads: its fields, and their JSON."""

    fields: Any
    json: bytes | None
    outputs: int
    model: str
    stream: bool | None


def body_parser(task: Task) -> Callable[[Any], Body]:
    """Return a function that validates the body of a request of this task."""

    def parsed(fields: Any) -> Body:
        valid = checked(task, fields)
        return Body(fields, valid.json, valid.outputs, fields.get("model") or "", valid.stream)

    return parsed


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[A]):
    """The functions of a path that a model answers.

    Attributes:
        parse: turns the body's JSON into a request; may raise RequestError.
        plan: returns the request for C++ and the writer of its response. It runs on a thread, and
            so does `parse` for long bodies.
        framing: the framing of streams.
        ignored: returns the names of fields without effect, out of those that C++ ignores.
        keep_alive: returns the seconds that the model stays loaded afterwards; None: unchanged.
    """

    parse: Callable[[Any], A]
    plan: Callable[[LoadedModel, A, Caller], tuple[HostRequest, Writer]]
    framing: Framing = OPENAI
    ignored: Callable[[A, Sequence[str]], Sequence[str]] = lambda _, ignored: ignored
    keep_alive: Callable[[A], float | None] = lambda _: None


def endpoint_of(task: Task, parse: Callable[[Any], Body] | None = None) -> Endpoint[Body]:
    """Return the endpoint of a path in OpenAI's shapes."""

    def plan(_: LoadedModel, body: Body, caller: Caller) -> tuple[HostRequest, Writer]:
        return HostRequest(task, body.fields, body=body.json, outputs=body.outputs), AsWritten()

    return Endpoint(parse or body_parser(task), plan)


class Pipeline:
    """Answers requests on the models of a server.

    Args:
        models: the models.
        media: fetches the images of requests; None: no image has an address.
    """

    def __init__(self, models: Models, media: MediaFetcher | None = None) -> None:
        self.models, self._media = models, media
        self._long_requests = ThreadPoolExecutor(1, "wherry-long-request")

    async def answer(self, http: Request, endpoint: Endpoint[A]) -> Response:
        """Answer a request; a stream keeps its model loaded until it ends.

        Raises:
            ApiError: no model has the name, or the server shuts down.
            RequestError: the request cannot be served.
            BusyError: the queue is full.
        """
        body = await body_of(http)
        async with AsyncExitStack() as stack:
            try:
                begun = await while_connected(http.receive, self._begin(body, endpoint, stack))
                return await _respond(http, endpoint, stack, *begun)
            except ClientGone:
                current().error = "client_gone"
                return Response(status_code=CLIENT_GONE)
            except asyncio.CancelledError as e:  # the server shuts down and its drain time is over
                raise shutting_down() from e

    async def _begin(
        self, body: bytes, endpoint: Endpoint[A], stack: AsyncExitStack
    ) -> tuple[A, Writer, Running, AsyncSink, list[bytes]]:
        request, loaded = await self._leased(body, endpoint.parse, stack, endpoint.keep_alive)
        record = current()
        # The engine is shared fairly between tenants: a key is one, and without keys and names of
        # users an address is.
        named = {"model": request.model, "key": record.key, "peer": record.client}
        writers: list[Writer] = []

        def plan(caller: Caller) -> HostRequest:
            planned, writer = endpoint.plan(loaded, request, caller)
            writers.append(writer)
            return replace(planned, options={**named, **planned.options})

        begun = await begin(loaded, plan, self._lane(body))
        return request, writers[0], *begun

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
        async with AsyncExitStack() as stack:

            async def compute() -> bytes:
                request, loaded = await self._leased(body, parse, stack)
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
        stack: AsyncExitStack,
        keep_alive: Callable[[M], float | None] = lambda _: None,
    ) -> tuple[M, LoadedModel]:
        """Parse the request and lease its model until `stack` is closed."""

        def parsed() -> M:
            return parse(parse_json(body))

        # a burst of requests begins over several iterations of the loop, so that others get a turn
        await turns_of(asyncio.get_running_loop()).enter(_START_WORK)
        if self._media is not None and b"image" in body:  # slashes may be escaped
            fields = await self._work(body, lambda: parse_json(body))
            await self._media.fetch(fields)
            request = await self._work(body, lambda: parse(fields))
        else:
            request = await self._work(body, parsed)
        lease = self.models.lease(request.model, keep_alive(request))
        served = await stack.enter_async_context(lease)
        request.model = served.name
        return request, served.loaded

    async def _work(self, body: bytes, work: Callable[[], T]) -> T:
        """Do what takes the longer the longer the body is; on a thread if that is long."""
        if len(body) <= _SHORT_BODY:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._lane(body), work)

    def _lane(self, body: bytes) -> ThreadPoolExecutor | None:
        # Long requests are parsed one at a time, because parsing holds the GIL.
        return self._long_requests if len(body) > LONG_BODY else None


async def _respond(
    http: Request,
    endpoint: Endpoint[A],
    stack: AsyncExitStack,
    request: A,
    writer: Writer,
    running: Running,
    sink: AsyncSink,
    ready: list[bytes],
) -> Response:
    current().begun(request.model, running, stream=bool(request.stream))
    about = running.opened
    ignored = endpoint.ignored(request, about["ignored"])
    headers = headers_of(ignored, about.get("adapted", ()))
    opening = writer.opening(running)
    if request.stream:
        stream = AsyncStream(running, sink, opening, ready, writer.chunks)
        return StreamedAnswer(stream, endpoint.framing, headers, stack.pop_all())
    try:
        data = await while_connected(http.receive, collect(running, sink, ready))
        blocks = await asyncio.to_thread(lambda: [*writer.full_response(data)])
    finally:
        running.close()
    return FullAnswer(blocks, headers)


async def body_of(http: Request) -> bytes:
    """Return the whole body of a request.

    Raises:
        ApiError: the client has gone.
    """
    try:
        return await http.body()  # Starlette caches the body, so a second call returns it again
    except ClientDisconnect as e:
        raise ApiError(CLIENT_GONE, "The client has gone away") from e
