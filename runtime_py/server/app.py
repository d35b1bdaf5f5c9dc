"""The HTTP server's application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from ..async_engine import AsyncMLCEngine
from ..base_engine import BaseEngine
from ..engine import MLCEngine
from .catalog.catalog import Catalog
from .defaults import MAX_BODY, MAX_QUEUE, STUCK_SECONDS
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
from .guard.permitted import Permitted
from .life import Life
from .models import Models, OneModel
from .observing import access_log
from .observing.engine_metrics import EngineMetrics
from .observing.metrics import Exposition, RequestMetrics
from .observing.observer import REQUEST_ID, Observer
from .observing.tracing import Tracing
from .pipeline import IGNORED_HEADER, Pipeline
from .serving import serve as serve  # the two names of this module
from .wire import errors as server_errors

_LIMITS = [f"X-RateLimit-{w}-{of}" for w in ("Limit", "Remaining") for of in ("requests", "tokens")]
EXPOSED = [IGNORED_HEADER, REQUEST_ID, "Retry-After", *_LIMITS]  # what pages of others may read


def create_app(
    engine: MLCEngine | AsyncMLCEngine | Models,
    *,
    model_name: str | None = None,
    api_key: str | None = None,
    keys: KeyRing | str | Path | None = None,
    cors: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    max_body: int = MAX_BODY,
    max_queue: int = MAX_QUEUE,
    request_timeout: float | None = None,
    stuck_seconds: float = STUCK_SECONDS,
    allow_pull: bool = False,
) -> FastAPI:
    """The application; it does not own the engine.

    Args:
        engine: serves the requests; or several models (wherry.runtime.server.catalog).
        model_name: the `model` that requests name; None: the engine's. For one model alone.
        api_key: clients must send it to every path but /health and /ready; None: anyone may ask.
        keys: a file of further keys with limits of their own (guard/keys.py), or what was made of
            one; then `api_key` is not looked at.
        cors: origins whose pages may ask ("*": all); None: none.
        hosts: names that requests may be sent to beside localhost and IP addresses ("*": all);
            with a key they are not looked at.
        max_body: bytes of a request, beyond which it is a 413.
        max_queue: outputs that may wait, beyond which a request is a 429.
        request_timeout: seconds that a request may take; beyond it is ended with a 504. Clients ask
            for less by X-Request-Timeout. None: as many as it takes.
        stuck_seconds: that there may be work of which none is done, beyond which /health is a 503.
        allow_pull: whether clients may let a Catalog download and compile models (/api/pull).
    """
    if isinstance(engine, BaseEngine):
        served: Models = OneModel(engine.loaded, model_name or engine.loaded.name)
    else:
        served = engine
    served.limit_queues(max_queue)
    if not isinstance(keys, KeyRing):
        keys = KeyRing(api_key, Path(keys) if keys else None)
    models, life = Permitted(served), Life()
    status = Status(models, life, stuck_seconds)
    app = FastAPI(title="Wherry", openapi_url=None)
    app.state.life, app.state.status = life, status
    server_errors.install(app)
    app.add_middleware(
        Gate,
        keys=keys,
        guard=BrowserGuard(hosts or (), cors or ()),
        life=life,
        max_body=max_body,
        request_timeout=request_timeout,
    )
    if cors:  # before the gate: a browser's preflight carries no key
        _allow_pages(app, cors)
    document, metrics = OpenApi(models, has_keys=bool(keys)), RequestMetrics(life)
    exposition = Exposition(metrics, EngineMetrics(models))
    pull = Pull(engine if isinstance(engine, Catalog) else None, allowed=allow_pull)
    operation: list[Group] = [status, MetricsPage(models, exposition), document, pull]
    memory = Memory()
    paths = _add_routes(app, status, document, [*operation, *_protocols(models, memory)])
    watchers = (metrics, access_log.write, Tracing())
    app.add_middleware(Observer, life=life, watchers=watchers, paths=paths)  # of all requests
    waiting = BODIES_AT_ONCE * max_body
    app.add_middleware(Sockets, memory=memory, life=life, max_waiting=waiting)  # makes requests
    return app


def _protocols(models: Models, memory: Memory) -> list[Group]:
    pipeline = Pipeline(models)
    return [
        OpenAI(pipeline),
        Vectors(pipeline),
        Responses(pipeline, memory),
        Conversations(memory),
        Anthropic(pipeline),
        Tokenizing(pipeline),
        Ollama(pipeline),
        OllamaEmbeddings(pipeline),
        OllamaModels(models),
    ]


def _allow_pages(app: FastAPI, origins: Sequence[str]) -> None:
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        allow_private_network=True,  # a page of the Internet asks whether it may come in
        expose_headers=EXPOSED,
    )


def _add_routes(
    app: FastAPI, status: Status, document: OpenApi, groups: Sequence[Group]
) -> set[str]:
    """Give the application all routes; their paths."""
    routes = {place: handler for group in groups for place, handler in group.routes().items()}
    for (method, path), handler in routes.items():
        app.add_api_route(path, handler, methods=[method])
    document.describe(routes)
    status.endpoints = [f"{method} {path}" for method, path in routes]
    return {path for _, path in routes}
