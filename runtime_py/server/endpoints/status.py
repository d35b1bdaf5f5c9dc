"""The endpoints that tell the server's state: /, /v1, /health, /ready, /version, /stats."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import wherry

from ...core.pulse import Snapshot, as_json
from ...load.model import LoadedModel
from ..guard.browser_guard import wants_page
from ..life import Life
from ..models import Models
from .described import FLAG, TEXT, described, list_of, object_of, one_of
from .looking import looked_at, memory
from .page import Page
from .routes import Routes

_WORST_FIRST = ("failed", "failing", "stuck", "ok")
_STATUS = one_of(*_WORST_FIRST)


class Status:
    """Handlers of /, /v1, /health, /ready, /version and /stats.

    Args:
        models: the server's models.
        life: the server's state.
        stuck_seconds: seconds without progress after which a working engine counts as stuck.
    """

    def __init__(self, models: Models, life: Life, stuck_seconds: float) -> None:
        self._models = models
        self._life = life
        self._stuck_seconds = stuck_seconds
        self._page = Page()
        self.endpoints: Sequence[str] = ()  # paths of all endpoints, set when all routes are known

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {
            ("GET", "/"): self.index,
            ("GET", "/v1"): self.v1,
            ("GET", "/health"): self.health,
            ("GET", "/ready"): self.ready,
            ("GET", "/version"): self.version,
            ("GET", "/stats"): self.stats,
        }

    def status(self) -> str:
        """Return the worst status of all models."""
        statuses = {self._of(m.loaded.dispatcher.snapshot()) for m in self._models.served()}
        return next((word for word in _WORST_FIRST if word in statuses), "ok")

    @described(
        answer=object_of(server=TEXT, models=list_of(TEXT), endpoints=list_of(TEXT)),
        media_types=("text/html",),
    )
    async def index(self, request: Request) -> Response:
        """Lists the server's paths; a browser gets a chat page."""
        if wants_page(request.scope, request.headers):
            return self._page.response()
        return self._contents("")

    @described(answer=object_of(server=TEXT, models=list_of(TEXT), endpoints=list_of(TEXT)))
    async def v1(self) -> Response:
        """Lists the models, and the paths below: what a client's base URL has."""
        return self._contents("/v1")

    def _contents(self, below: str) -> Response:
        names = [m.name for m in self._models.listed()]
        paths = [path for path in self.endpoints if path.partition(" ")[2].startswith(below)]
        return JSONResponse(
            {"server": "wherry", "model": names[0] if names else None, "models": names}
            | {"endpoints": paths}
        )

    @described(answer=object_of(status=_STATUS), statuses=(503,))
    async def health(self) -> Response:
        """Answers 503 if an engine is stuck or has failed."""
        status = self.status()
        return JSONResponse({"status": status}, 200 if status == "ok" else 503)

    @described(answer=object_of(ready=FLAG, status=TEXT), statuses=(503,))
    async def ready(self) -> Response:
        """Answers 503 if an engine is stuck or has failed, or the server drains."""
        status = "draining" if self._life.draining else self.status()
        is_ready = status == "ok"
        return JSONResponse({"ready": is_ready, "status": status}, 200 if is_ready else 503)

    @described(answer=object_of(version=TEXT, server=TEXT))
    async def version(self) -> Response:
        """Returns Wherry's version."""
        return JSONResponse({"version": wherry.__version__, "server": "wherry"})

    @described(answer=object_of(status=_STATUS, models={"type": "object"}))
    async def stats(self) -> Response:
        """Returns the engines' counters; during a long step, the last known ones."""
        served = self._models.served()
        stats_of_models = await asyncio.gather(*(self._stats(m.loaded) for m in served))
        models = {m.name: stats for m, stats in zip(served, stats_of_models, strict=True)}
        first: dict[str, Any] = {"model": served[0].name, **stats_of_models[0]} if served else {}
        rest = {"status": self.status(), "memory": memory(), "models": models}
        return JSONResponse(first | rest)

    async def _stats(self, loaded: LoadedModel) -> dict[str, Any]:
        snapshot = await looked_at(loaded.dispatcher)
        return {"status": self._of(snapshot), **as_json(snapshot)}

    def _of(self, snapshot: Snapshot) -> str:
        if snapshot.failed:
            return "failed"
        if snapshot.stats.failed_steps:  # after a lost device every step fails
            return "failing"
        return "stuck" if snapshot.stalled_seconds > self._stuck_seconds else "ok"
