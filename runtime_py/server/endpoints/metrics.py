"""The endpoint GET /metrics for Prometheus."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from ..models import Models
from ..observing.metrics import Exposition
from .described import described
from .looking import looked_at
from .routes import Routes


class MetricsPage:
    """The handler of GET /metrics.

    Args:
        models: the server's models.
        exposition: the function that writes the metrics.
    """

    def __init__(self, models: Models, exposition: Exposition) -> None:
        self._models = models
        self._exposition = exposition

    def routes(self) -> Routes:
        """Return the handler of each method and path; implements `Group.routes`."""
        return {("GET", "/metrics"): self.metrics}

    @described(media_types=("text/plain", "application/openmetrics-text"))
    async def metrics(self, request: Request) -> Response:
        """Writes all metrics in the format that Accept asks for."""
        await asyncio.gather(*(looked_at(m.loaded.dispatcher) for m in self._models.served()))
        accept = request.headers.get("accept", "")
        content, media_type = await asyncio.to_thread(self._exposition.written, accept)
        return Response(content, headers={"Content-Type": media_type})
