"""Running the server in this process."""

from __future__ import annotations

import contextlib
import copy
import ipaddress
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from typing_extensions import Unpack
from uvicorn.config import LOGGING_CONFIG

from wherry import settings
from wherry.errors import UsageError

from .engine import MLCEngine
from .load_options import LoadOptions

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
    max_body: int | None = None,
    max_queue: int | None = None,
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
        max_body: see create_app.
        max_queue: see create_app.
        drain_seconds: how long requests under way may take; then they are aborted.
        on_ready: called with the server's URL once it listens.
        options: see MLCEngine.

    Raises:
        UsageError: `host` needs a key, or the address is taken.
    """
    from .server import create_app

    api_key = api_key or settings.api_key()
    check_host(host, api_key)
    limits = {"max_body": max_body, "max_queue": max_queue}
    engine = model if isinstance(model, MLCEngine) else MLCEngine(model, **options)
    try:
        app = create_app(
            engine,
            model_name=model_name,
            api_key=api_key,
            cors=cors,
            **{n: v for n, v in limits.items() if v is not None},
        )
        config = uvicorn.Config(
            app,
            host,
            port,
            log_config=_log_config(),
            timeout_graceful_shutdown=drain_seconds,
            lifespan="off",
        )
        with _quiet_signals(), contextlib.suppress(KeyboardInterrupt):
            _Uvicorn(config, on_ready).run()
    finally:
        if engine is not model:
            engine.close()


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: Any = None) -> None:
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
