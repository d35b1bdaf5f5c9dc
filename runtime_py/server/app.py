"""The OpenAI-compatible HTTP server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from ..answer.generation import Generation
from ..answer.reply import Reply, Streaming
from ..async_engine import AsyncMLCEngine, AsyncStream, begin, collect
from ..core.dispatcher import AsyncSink
from ..core.pulse import Snapshot, as_json
from ..engine import MLCEngine
from ..load.model import LoadedModel
from ..request.caller import Caller
from ..request.plan import Plan
from ..request.shapes import ChatRequest, CompletionRequest, R, SamplingRequest, ignored, parse
from . import errors as server_errors
from .browser_guard import BrowserGuard
from .errors import ApiError, shutting_down
from .gate import Gate
from .json_body import encoded, parse_json
from .serving import serve as serve  # the two names of this module
from .sse import ClientGone, EventStream, while_connected

MAX_BODY = 16 * 2**20  # bytes
MAX_QUEUE = 256  # outputs that wait, beyond those that run
STUCK_SECONDS = 120  # more than the longest step of a large model on a slow machine
_LOOK_SECONDS = 0.2  # that /stats waits for the engine's counters
LONG_BODY = 2**16  # bytes
IGNORED_HEADER = "X-Wherry-Ignored"
_CLIENT_GONE = 499  # as nginx logs it; nobody receives it


def create_app(
    engine: MLCEngine | AsyncMLCEngine,
    *,
    model_name: str | None = None,
    api_key: str | None = None,
    cors: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    max_body: int = MAX_BODY,
    max_queue: int = MAX_QUEUE,
    stuck_seconds: float = STUCK_SECONDS,
) -> FastAPI:
    """The application; it does not own the engine.

    Args:
        engine: serves the requests.
        model_name: the `model` that requests name; None: the engine's.
        api_key: clients must send it to every path but /health; None: anyone may ask.
        cors: origins whose pages may ask ("*": all); None: none.
        hosts: names that requests may be sent to beside localhost and IP addresses ("*": all);
            with a key they are not looked at.
        max_body: bytes of a request, beyond which it is a 413.
        max_queue: outputs that may wait, beyond which a request is a 429.
        stuck_seconds: that there may be work of which none is done, beyond which /health is a 503.
    """
    loaded = engine.loaded
    loaded.dispatcher.limit = loaded.max_batch + max_queue
    app = FastAPI(title="Wherry", openapi_url=None)
    server_errors.install(app)
    guard = BrowserGuard(hosts or (), cors or ())
    app.add_middleware(Gate, api_key=api_key, guard=guard, max_body=max_body)
    if cors:  # outermost: a browser's preflight carries no key
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(cors),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            allow_private_network=True,  # a page of the Internet asks whether it may come in
            expose_headers=[IGNORED_HEADER, "Retry-After"],
        )
    _add_routes(app, _Server(loaded, model_name or loaded.name, stuck_seconds))
    return app


def _add_routes(app: FastAPI, server: _Server) -> None:
    get: dict[str, Callable[..., Any]] = {
        "/": server.index,
        "/health": server.health,
        "/stats": server.stats,
        "/v1/models": server.models,
        "/v1/models/{name:path}": server.model,
    }
    post = {"/v1/chat/completions": server.chat, "/v1/completions": server.completion}
    for path, handler in get.items():
        app.add_api_route(path, handler, methods=["GET"])
    for path, handler in post.items():
        app.add_api_route(path, handler, methods=["POST"])
    server.endpoints = [*(f"GET {p}" for p in get), *(f"POST {p}" for p in post)]


class _Server:
    """The handlers."""

    def __init__(self, loaded: LoadedModel, name: str, stuck_seconds: float) -> None:
        self._loaded = loaded
        self._name = name
        self._stuck_seconds = stuck_seconds
        self._created = int(time.time())
        self._long_requests = ThreadPoolExecutor(1, "wherry-long-request")
        self.endpoints: list[str] = []

    async def index(self) -> Response:
        return JSONResponse({"server": "wherry", "model": self._name, "endpoints": self.endpoints})

    async def health(self) -> Response:
        status = self._status(self._loaded.dispatcher.snapshot())
        return JSONResponse({"status": status}, 200 if status == "ok" else 503)

    def _status(self, found: Snapshot) -> str:
        if found.failed:
            return "failed"
        if found.stats.failed_steps:  # a lost device fails them all
            return "failing"
        return "stuck" if found.stalled_seconds > self._stuck_seconds else "ok"

    async def stats(self) -> Response:
        """What the engine does now; if it does not say so soon, what it did when last seen."""
        dispatcher = self._loaded.dispatcher
        looks, end = dispatcher.pulse.looks, time.monotonic() + _LOOK_SECONDS
        dispatcher.pulse.stir()
        while dispatcher.pulse.looks == looks and time.monotonic() < end:
            await asyncio.sleep(0.005)
        found = dispatcher.snapshot()
        return JSONResponse({"status": self._status(found), "model": self._name, **as_json(found)})

    async def models(self) -> Response:
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def model(self, name: str) -> Response:
        self._check_name(name)
        return JSONResponse(self._model())

    def _model(self) -> dict[str, Any]:
        return {
            "id": self._name,
            "object": "model",
            "created": self._created,
            "owned_by": "wherry",
            "max_model_len": self._loaded.context,  # tokens; as vLLM names it
        }

    def _check_name(self, name: str) -> None:
        if name != self._name:
            raise ApiError(
                404,
                f"The model {name[:100]!r} is not served here; {self._name!r} is",
                param="model",
                code="model_not_found",
            )

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, ChatRequest, self._loaded.chat)

    async def completion(self, request: Request) -> Response:
        return await self._answer(request, CompletionRequest, self._loaded.completion)

    async def _answer(
        self,
        http: Request,
        kind: type[R],
        plan: Callable[[R, Caller], tuple[Plan, Reply[Any, Any]]],
    ) -> Response:
        body = await _body(http)
        asked: list[R] = []

        def prepare(caller: Caller) -> tuple[Plan, Reply[Any, Any]]:
            request = parse(kind, parse_json(body))
            caller.check()
            self._check_name(request.model or self._name)
            request.model = self._name
            asked.append(request)
            return plan(request, caller)

        # One long request at a time: what holds the interpreter's lock there holds it but once.
        lane = self._long_requests if len(body) > LONG_BODY else None
        try:
            begun = await while_connected(http.receive, begin(self._loaded, prepare, lane))
            return await self._reply(http, asked[0], *begun)
        except ClientGone:
            return Response(status_code=_CLIENT_GONE)

    async def _reply(
        self, http: Request, request: R, generation: Generation, sink: AsyncSink, reply: Any
    ) -> Response:
        headers = _ignored_header(request)
        if request.stream:
            stream = AsyncStream(generation, sink, Streaming(generation, reply))
            return EventStream(stream, headers)
        try:
            answer = await while_connected(http.receive, collect(generation, sink, reply))
            content = await asyncio.to_thread(lambda: encoded(answer.whole().model_dump()))
        except asyncio.CancelledError as e:  # the server ends, and has waited long enough
            raise shutting_down() from e
        finally:
            generation.close()
        return Response(content, media_type="application/json", headers=headers)


def _ignored_header(request: SamplingRequest) -> dict[str, str]:
    names = ignored(request)
    # A header holds Latin-1 without controls; a name that is none of that is cut to it.
    listed = ", ".join(n[:100].encode("ascii", "backslashreplace").decode() for n in names)
    return {IGNORED_HEADER: _printable(listed)} if names else {}


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:1024]


async def _body(http: Request) -> bytes:
    try:
        return b"".join([piece async for piece in http.stream()])
    except ClientDisconnect as e:
        raise ApiError(_CLIENT_GONE, "The client has gone away") from e
