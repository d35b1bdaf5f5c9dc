"""Runs the server in this process: the function `serve`."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
from pathlib import Path

from typing_extensions import Unpack

from wherry.base import settings

from ..engine import MLCEngine
from .app import create_app
from .defaults import DRAIN_SECONDS
from .guard.keys import KeyRing
from .listening import Address
from .models import Models
from .observing import access_log
from .options import ServeOptions, checked_serve
from .running import RunningServer, end_process, quiet_signals
from .wire.http_protocol import ConnectionLimits, ServerConfig

_log = logging.getLogger(__name__)
_BACKLOG = 64  # connections that one iteration of the event loop accepts
_FEW = 64  # connections below which the start says how many there are
_MANY_FILES = 2**31 - 1  # no limit
_OTHER_FILES = 32  # number of files that a running server may open in addition to its connections


def serve(
    model: str | Path | MLCEngine | Models,
    host: str = "127.0.0.1",
    port: int = 8000,
    **options: Unpack[ServeOptions],
) -> None:
    """Serve one or several models until SIGINT or SIGTERM; running requests may end first.

    After the first signal new requests get a 503, and /ready too; the second one aborts running
    requests. SIGHUP reads the files of keys and of TLS again.

    Args:
        model: a model that MLCEngine accepts, or an engine or several models, which the caller
            closes.
        host: the address to listen on; other machines can reach it only with a key.
        port: the TCP port; 0 takes a free one.
        options: the options in ServeOptions.

    Raises:
        UsageError: `host` needs a key, the address is taken, or a file cannot be used.
        TypeError: an option is unknown.
    """
    address, ring = checked(host, port, **options)
    for_app, for_load, own = checked_serve(options)
    for_app["keys"] = ring
    if address.uds:  # a browser cannot reach a Unix socket, so no page is offered
        for_app["hosts"] = ("*",)
    engine = MLCEngine(model, **for_load) if isinstance(model, (str, Path)) else None
    served = engine or model
    assert not isinstance(served, (str, Path))
    try:
        app = create_app(served, **for_app)
        drain_seconds = own.get("drain_seconds", DRAIN_SECONDS)
        backlog = min(_BACKLOG, _most_files() // 4)
        config = ServerConfig(
            app,
            own.get("limits") or ConnectionLimits(connections=_connections(backlog)),
            host=address.host,
            port=address.port,
            ssl_certfile=address.tls_cert,
            ssl_keyfile=address.tls_key,
            backlog=backlog,
            log_config=access_log.config(own.get("log_format", "text")),
            access_log=False,  # Wherry's own log says more than uvicorn's
            timeout_graceful_shutdown=drain_seconds,
            lifespan="off",
            ws_max_size=for_app["max_body"],
        )
        server = RunningServer(
            config,
            address,
            ring,
            app.state.life,
            app.state.status,
            drain_seconds=drain_seconds,
            exit_when_stuck=own.get("exit_when_stuck", False),
            on_ready=own.get("on_ready"),
        )
        # What is loaded by now stays. A garbage collection that visits it stops all threads for a
        # tenth of a second.
        gc.freeze()
        try:
            with quiet_signals(), contextlib.suppress(KeyboardInterrupt):
                server.run()
        finally:
            gc.unfreeze()
        if server.ends_process:
            end_process()
    finally:
        if engine:
            engine.close()


def checked(
    host: str = "127.0.0.1", port: int = 8000, **options: Unpack[ServeOptions]
) -> tuple[Address, KeyRing]:
    """Check the arguments of `serve` before a model is loaded; return the address and the keys.

    Raises:
        UsageError: an argument is wrong, or two of them contradict each other.
    """
    address = Address(
        host=host,
        port=port,
        uds=_path(options.get("uds")),
        uds_mode=options.get("uds_mode", 0o600),
        tls_cert=_path(options.get("tls_cert")),
        tls_key=_path(options.get("tls_key")),
    )
    keys = options.get("keys")
    if not isinstance(keys, KeyRing):
        keys = KeyRing(options.get("api_key") or settings.api_key(), _path(keys))
    address.check(bool(keys))
    address.check_free()
    return address, keys


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _most_files() -> int:
    """Return how many files this process may open."""
    if sys.platform == "win32":  # sockets on Windows are no files and do not count against a limit
        return _MANY_FILES
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY_FILES if limit == resource.RLIM_INFINITY else limit


def _connections(backlog: int) -> int:
    """Return the number of connections that this process's limit of open files allows."""
    most, limit = ConnectionLimits().connections, _most_files()
    if limit == _MANY_FILES:
        return most
    reserved = backlog + min(_OTHER_FILES, limit // 4)
    connections = max(1, min(most, limit - len(list(Path("/dev/fd").iterdir())) - reserved))
    if connections < _FEW:
        _log.warning(
            "This process may open %d files, so that it keeps %d connections at a time; further "
            "ones get a 503. Raise the limit before the start: ulimit -n 1024",
            limit,
            connections,
        )
    return connections
