"""Running the server in this process."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import ipaddress
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from typing_extensions import Unpack
from uvicorn.config import LOGGING_CONFIG

from wherry import settings
from wherry.errors import UsageError

from ..engine import MLCEngine
from ..load.options import LoadOptions
from .wire.http_protocol import ConnectionLimits, ServerConfig

_log = logging.getLogger(__name__)
_BACKLOG = 64  # connections that one turn of the event loop accepts at most
_OTHER_FILES = 32  # that a running server may open beside its connections
_FULL_LOG_SECONDS = 60  # between two lines about a full table of files
DRAIN_SECONDS = 30  # that requests under way have after SIGTERM


def check_host(host: str, api_key: str | None) -> None:
    """Refuse to open a model without a key to other machines.

    Raises:
        UsageError: `host` is not a loopback address and there is no key.
    """
    if api_key or host == "localhost":
        return
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_loopback:
            return
    raise UsageError(
        f"host is {host!r}, which other machines may reach, and there is no API key. Give one "
        "(--api-key or WHERRY_API_KEY), or listen on 127.0.0.1."
    )


def serve(
    model: str | Path | MLCEngine,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    model_name: str | None = None,
    api_key: str | None = None,
    cors: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    max_body: int | None = None,
    max_queue: int | None = None,
    limits: ConnectionLimits | None = None,
    drain_seconds: int = DRAIN_SECONDS,
    on_ready: Callable[[str], None] | None = None,
    **options: Unpack[LoadOptions],
) -> None:
    """Serve a model until SIGINT or SIGTERM; requests under way may end first.

    Args:
        model: what MLCEngine accepts, or an engine, which stays open afterwards.
        host: address to listen on; not a loopback address only with a key.
        port: 0 takes a free one.
        model_name: see create_app.
        api_key: None: WHERRY_API_KEY, if it is set.
        cors: see create_app.
        hosts: see create_app.
        max_body: see create_app.
        max_queue: see create_app.
        limits: of connections; None: as many as this process may have files for, at most 512.
        drain_seconds: how long requests under way may take; then they are aborted.
        on_ready: called with the server's URL once it listens.
        options: see MLCEngine.

    Raises:
        UsageError: `host` needs a key, or the address is taken.
    """
    from .app import create_app

    api_key = api_key or settings.api_key()
    check_host(host, api_key)
    sizes = {"max_body": max_body, "max_queue": max_queue}
    engine = model if isinstance(model, MLCEngine) else MLCEngine(model, **options)
    try:
        app = create_app(
            engine,
            model_name=model_name,
            api_key=api_key,
            cors=cors,
            hosts=hosts,
            **{n: v for n, v in sizes.items() if v is not None},
        )
        config = ServerConfig(
            app,
            limits or ConnectionLimits(connections=_connections()),
            host=host,
            port=port,
            backlog=_BACKLOG,
            log_config=_log_config(),
            timeout_graceful_shutdown=drain_seconds,
            lifespan="off",
        )
        with _quiet_signals(), contextlib.suppress(KeyboardInterrupt):
            _Uvicorn(config, on_ready).run()
    finally:
        if engine is not model:
            engine.close()


def _connections() -> int:
    """As many as the limit of this process's files leaves room for."""
    most = ConnectionLimits().connections
    if sys.platform == "win32":  # its sockets are no files
        return most
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return most
    left = limit - len(list(Path("/dev/fd").iterdir())) - _BACKLOG - _OTHER_FILES
    return max(1, min(most, left))


class _QuietAccept:
    """Logs once a minute that no connection can be accepted, where asyncio logs without end.

    Python 3.11 tries `backlog` times more after such an error, and each time writes a traceback.
    """

    def __init__(self) -> None:
        self._said = -float(_FULL_LOG_SECONDS)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "accept" not in context.get("message", "") or not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._said >= _FULL_LOG_SECONDS:
            self._said = time.monotonic()
            _log.warning("No connection can be accepted: %s. Raise the limit: ulimit -n", error)


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: Any = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_QuietAccept())
        try:
            await super().startup(sockets)
        except SystemExit as e:  # it has logged why
            where = f"{self.config.host}:{self.config.port}"
            raise UsageError(
                f"Cannot listen on {where}; its log above says why. Choose another --port."
            ) from e
        if self._on_ready and self.started:
            address = self.servers[0].sockets[0].getsockname()
            name = f"[{address[0]}]" if ":" in address[0] else address[0]
            self._on_ready(f"http://{name}:{address[1]}")


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Let SIGTERM end `run` in order: uvicorn raises it again after its own shutdown."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _log_config() -> dict[str, Any]:
    """Uvicorn's own, with the access log on stderr too: stdout is for results."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    return config
