"""The HTTP server's application."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from ..async_engine import AsyncMLCEngine
from ..engine import MLCEngine
from .endpoints.openai import OpenAI
from .endpoints.status import Status
from .endpoints.vectors import Vectors
from .guard.browser_guard import BrowserGuard
from .guard.gate import Gate
from .models import Models, OneModel
from .pipeline import IGNORED_HEADER, Pipeline
from .serving import serve as serve  # the two names of this module
from .wire import errors as server_errors

MAX_BODY = 16 * 2**20  # bytes
MAX_QUEUE = 256  # outputs that wait, beyond those that run
STUCK_SECONDS = 120  # more than the longest step of a large model on a slow machine


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
    _add_routes(app, OneModel(loaded, model_name or loaded.name), stuck_seconds)
    return app


def _add_routes(app: FastAPI, models: Models, stuck_seconds: float) -> None:
    pipeline = Pipeline(models)
    status = Status(models, stuck_seconds)
    groups = (status, OpenAI(pipeline), Vectors(pipeline))
    routes = {place: handler for group in groups for place, handler in group.routes().items()}
    for (method, path), handler in routes.items():
        app.add_api_route(path, handler, methods=[method])
    status.endpoints = [f"{method} {path}" for method, path in routes]
