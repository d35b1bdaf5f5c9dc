"""Builds the HTTP server's ASGI application from its route groups and middleware."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from typing_extensions import Unpack

from ..async_engine import AsyncMLCEngine
from ..base_engine import BaseEngine
from ..engine import MLCEngine
from .catalog.catalog import Catalog
from .endpoints.anthropic.paths import Anthropic
from .endpoints.metrics import MetricsPage
from .endpoints.ollama.embeddings import OllamaEmbeddings
from .endpoints.ollama.models import OllamaModels
from .endpoints.ollama.ollama import Ollama
from .endpoints.ollama.pull import Pull
from .endpoints.openai import OpenAI
from .endpoints.openapi import OpenApi
from .endpoints.responses.conversations import Conversations
from .endpoints.responses.memory import Memory
from .endpoints.responses.paths import Responses
from .endpoints.responses.socket import Sockets
from .endpoints.routes import Group
from .endpoints.status import Status
from .endpoints.tokenizing import Tokenizing
from .endpoints.vectors import Vectors
from .guard.browser_guard import BrowserGuard
from .guard.gate import BODIES_AT_ONCE, Gate
from .guard.keys import KeyRing
from .guard.media_hosts import MediaHosts
from .guard.permitted import Permitted
from .life import Life
from .models import Models, OneModel
from .observing import access_log
from .observing.engine_metrics import EngineMetrics
from .observing.metrics import Exposition, RequestMetrics
from .observing.observer import REQUEST_ID, Observer
from .observing.tracing import Tracing
from .options import AppOptions, checked_app
from .pipeline import Pipeline
from .wire import errors as server_errors
from .wire.framing import ADAPTED_HEADER, IGNORED_HEADER
from .wire.media import MediaFetcher

_LIMITS = [f"X-RateLimit-{w}-{of}" for w in ("Limit", "Remaining") for of in ("requests", "tokens")]
# Response headers that pages of other origins may read.
EXPOSED = [IGNORED_HEADER, ADAPTED_HEADER, REQUEST_ID, "Retry-After", *_LIMITS]


def create_app(
    engine: MLCEngine | AsyncMLCEngine | Models, **options: Unpack[AppOptions]
) -> FastAPI:
    """Build the server's application; it does not own the engine.

    Args:
        engine: the engine that serves the requests, or several models
            (wherry.runtime.server.catalog).
        options: the options in AppOptions.

    Raises:
        TypeError: an option is unknown.
    """
    chosen = checked_app(options)
    if isinstance(engine, BaseEngine):
        served: Models = OneModel(engine.loaded, chosen["model_name"] or engine.loaded.name)
    else:
        served = engine
    served.limit_queues(chosen["max_queue"])
    keys = chosen["keys"]
    if not isinstance(keys, KeyRing):
        keys = KeyRing(chosen["api_key"], Path(keys) if keys else None)
    models, life = Permitted(served), Life()
    status = Status(models, life, chosen["stuck_seconds"])
    app = FastAPI(title="Wherry", openapi_url=None)
    app.state.life, app.state.status = life, status
    server_errors.install(app)
    app.add_middleware(
        Gate,
        keys=keys,
        guard=BrowserGuard(chosen["hosts"] or (), chosen["cors"] or ()),
        life=life,
        max_body=chosen["max_body"],
        request_timeout=chosen["request_timeout"],
    )
    # the CORS middleware comes before the gate, because a browser's preflight request has no key
    if cors := chosen["cors"]:
        _allow_pages(app, cors)
    document, metrics = OpenApi(models, has_keys=bool(keys)), RequestMetrics(life)
    exposition = Exposition(metrics, EngineMetrics(models), shows=models.shows)
    pull = Pull(engine if isinstance(engine, Catalog) else None, allowed=chosen["allow_pull"])
    operation: list[Group] = [status, MetricsPage(models, exposition), document, pull]
    memory = Memory()
    media = MediaHosts(chosen["media_hosts"] or ())
    pipeline = Pipeline(models, MediaFetcher(media) if media else None)
    paths = _add_routes(app, status, document, [*operation, *_protocols(pipeline, memory)])
    watchers = (metrics, access_log.write, Tracing())
    # The observer is the outermost middleware, so that it sees all requests.
    app.add_middleware(Observer, life=life, watchers=watchers, paths=paths)
    waiting = BODIES_AT_ONCE * chosen["max_body"]
    # This middleware turns the messages of WebSockets into requests.
    app.add_middleware(Sockets, memory=memory, life=life, max_waiting=waiting)
    return app


def _protocols(pipeline: Pipeline, memory: Memory) -> list[Group]:
    return [
        OpenAI(pipeline),
        Vectors(pipeline),
        Responses(pipeline, memory),
        Conversations(memory),
        Anthropic(pipeline),
        Tokenizing(pipeline),
        Ollama(pipeline),
        OllamaEmbeddings(pipeline),
        OllamaModels(pipeline.models),
    ]


def _allow_pages(app: FastAPI, origins: Sequence[str]) -> None:
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        # Chrome's preflight asks for this when a public page requests a private address
        allow_private_network=True,
        expose_headers=EXPOSED,
    )


def _add_routes(
    app: FastAPI, status: Status, document: OpenApi, groups: Sequence[Group]
) -> set[str]:
    """Add all routes to the application; return their paths."""
    routes = {place: handler for group in groups for place, handler in group.routes().items()}
    for (method, path), handler in routes.items():
        app.add_api_route(path, handler, methods=[method])
    document.describe(routes)
    status.endpoints = [f"{method} {path}" for method, path in routes]
    return {path for _, path in routes}
