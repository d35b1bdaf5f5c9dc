"""A deployment of Ray Serve that runs one engine with the whole HTTP server."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import ray
from ray import serve

from wherry.base import settings

from ..engine import MLCEngine
from ..load.options import checked
from ..server.app import create_app
from .http_call import REPLICA_HEADER, Head, HttpRequest, answers, check_health
from .kept import Keepers, given
from .options import Options
from .prefix_memory import PrefixMemory, report
from .prompt_prefix import unpacked

_log = logging.getLogger(__name__)
# Number of blocks that a replica reports to routers, in all and for one prompt.
REPORTED, REPORTED_OF_ONE = 4096, 128
_KEPT = 1024  # number of responses and conversations that a replica reports to routers


class Replica:
    """Loads a model, compiling it at the first time on this machine, and answers HTTP requests.

    Args:
        options: the application's options.
        api_key: the key that clients need, as in create_app.
    """

    def __init__(self, options: Options, api_key: str | None) -> None:
        self._name = str(serve.get_replica_context().replica_id.unique_id)
        self._options = options
        self._keeps = Keepers()
        self._requests = 0  # number of running requests
        self._sent: PrefixMemory[str] = PrefixMemory(REPORTED)
        self._has_disk = bool(options.load.get("prefix_cache_dir"))
        self._engine = MLCEngine(options.model, **checked(_load_options(options)))
        self._app = create_app(
            self._engine,
            model_name=options.model_name,
            api_key=api_key or settings.api_key(),
            keys=options.keys,
            cors=options.cors,
            hosts=options.hosts,
            media_hosts=options.media_hosts,
            max_body=options.max_body,
            max_queue=options.max_queue,
            request_timeout=options.request_timeout,
            stuck_seconds=options.stuck_seconds,
        )

    async def serve_http(self, request: HttpRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the response to one request: a Head, then bytes."""
        self._sent.note(self._name, unpacked(request.prefix)[:REPORTED_OF_ONE])
        self._requests += 1
        try:
            async for piece in answers(self._app, request, self._interval):
                if isinstance(piece, Head):
                    self._keeps.note(self._name, given(request.path, piece.body))
                    piece = self._signed(piece)
                yield piece
        finally:
            self._requests -= 1

    def _interval(self) -> float:
        """Return the seconds between two pieces of a stream.

        They grow with the number of streams, because the pieces a second of all streams are
        limited.
        """
        pieces = self._requests / self._options.stream_pieces_per_second
        return max(self._options.stream_interval_seconds, pieces)

    def _signed(self, head: Head) -> Head:
        return replace(head, headers=(*head.headers, (REPLICA_HEADER, self._name.encode())))

    async def check_health(self) -> None:
        """Raise an error if the engine has failed or is stuck.

        Ray Serve then replaces the replica.
        """
        await check_health(self._app)

    def record_routing_stats(self) -> dict[str, Any]:
        """Report this replica's caches to routers; Ray Serve calls this every few seconds."""
        newest = self._sent.newest(self._name, REPORTED)
        blocks = report(newest, None if self._has_disk else self._cache_tokens())
        return blocks | {"kept": self._keeps.newest(self._name, _KEPT)}

    def _cache_tokens(self) -> int:
        stats = self._engine.loaded.dispatcher.snapshot().stats
        return stats.pages_total * stats.page_size

    def __del__(self) -> None:
        """Close the engine; Ray Serve calls this when all requests have ended."""
        if engine := getattr(self, "_engine", None):
            engine.close()


def _load_options(options: Options) -> dict[str, Any]:
    """Return the options of the load; `threads` defaults to the CPUs that Ray assigns."""
    if options.load.get("threads") or settings.threads():
        return options.load
    cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 0)
    return {**options.load, "threads": max(1, int(cpus))}
