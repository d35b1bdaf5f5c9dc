"""Running the server in this process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from wherry import settings

from ..engine import MLCEngine
from ..load.options import LoadOptions
from .defaults import DRAIN_SECONDS, MAX_BODY, MAX_QUEUE, STUCK_SECONDS
from .guard.keys import KeyRing
from .listening import Address
from .models import Models
from .observing import access_log
from .running import RunningServer, end_process, quiet_signals
from .wire.http_protocol import ConnectionLimits, ServerConfig

_BACKLOG = 64  # connections that one turn of the event loop accepts at most
_OTHER_FILES = 32  # that a running server may open beside its connections


def serve(
    model: str | Path | MLCEngine | Models,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    model_name: str | None = None,
    api_key: str | None = None,
    keys: str | Path | None = None,
    cors: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    uds: str | Path | None = None,
    uds_mode: int = 0o600,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    max_body: int = MAX_BODY,
    max_queue: int = MAX_QUEUE,
    request_timeout: float | None = None,
    stuck_seconds: float = STUCK_SECONDS,
    exit_when_stuck: bool = False,
    log_format: str = "text",
    limits: ConnectionLimits | None = None,
    drain_seconds: int = DRAIN_SECONDS,
    allow_pull: bool = False,
    on_ready: Callable[[str], None] | None = None,
    **options: Unpack[LoadOptions],
) -> None:
    """Serve a model, or several, until SIGINT or SIGTERM; requests under way may end first.

    The first signal takes no new requests (/ready says so, they get a 503), the second ends those
    under way. SIGHUP reads the files of keys and of TLS again.

    Args:
        model: what MLCEngine accepts; or an engine, or several models, which stay open afterwards.
        host: address to listen on; not a loopback address only with a key.
        port: 0 takes a free one.
        model_name: see create_app.
        api_key: None: WHERRY_API_KEY, if it is set.
        keys: see create_app.
        cors: see create_app.
        hosts: see create_app.
        uds: a Unix socket to listen on, in place of host and port.
        uds_mode: who may use it, as chmod has it.
        tls_cert: PEM file with a certificate: HTTPS alone is answered.
        tls_key: PEM file with its key; None: it is in tls_cert.
        max_body: see create_app.
        max_queue: see create_app.
        request_timeout: see create_app.
        stuck_seconds: see create_app.
        exit_when_stuck: end the process, with exit code 1, when the engine has failed or is stuck:
            for supervisors, which start it again.
        log_format: "text" or "json"; a line for each request.
        limits: of connections; None: as many as this process may have files for, at most 512.
        drain_seconds: how long requests under way may take; then they are aborted.
        allow_pull: see create_app.
        on_ready: called with the server's URL once it listens.
        options: see MLCEngine.

    Raises:
        UsageError: `host` needs a key, the address is taken, or a file cannot be used.
    """
    from .app import create_app

    address, ring = checked(
        host,
        port,
        api_key=api_key,
        keys=keys,
        uds=uds,
        uds_mode=uds_mode,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    own = MLCEngine(model, **options) if isinstance(model, (str, Path)) else None
    served = own or model
    assert not isinstance(served, (str, Path))
    try:
        app = create_app(
            served,
            model_name=model_name,
            keys=ring,
            cors=cors,
            hosts=("*",) if address.uds else hosts,  # no page of a browser reaches a socket
            max_body=max_body,
            max_queue=max_queue,
            request_timeout=request_timeout,
            stuck_seconds=stuck_seconds,
            allow_pull=allow_pull,
        )
        config = ServerConfig(
            app,
            limits or ConnectionLimits(connections=_connections()),
            host=address.host,
            port=address.port,
            ssl_certfile=address.tls_cert,
            ssl_keyfile=address.tls_key,
            backlog=_BACKLOG,
            log_config=access_log.config(log_format),
            access_log=False,  # of uvicorn's: ours says more
            timeout_graceful_shutdown=drain_seconds,
            lifespan="off",
            ws_max_size=max_body,
        )
        server = RunningServer(
            config,
            address,
            ring,
            app.state.life,
            app.state.status,
            drain_seconds=drain_seconds,
            exit_when_stuck=exit_when_stuck,
            on_ready=on_ready,
        )
        with quiet_signals(), contextlib.suppress(KeyboardInterrupt):
            server.run()
        if server.ends_process:
            end_process()
    finally:
        if own:
            own.close()


def checked(
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    api_key: str | None = None,
    keys: str | Path | None = None,
    uds: str | Path | None = None,
    uds_mode: int = 0o600,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    **_others: Any,
) -> tuple[Address, KeyRing]:
    """Where to listen and who may ask, out of the arguments of `serve`.

    Raises:
        UsageError: they do not fit; known before a model is loaded.
    """
    address = Address(
        host=host,
        port=port,
        uds=_path(uds),
        uds_mode=uds_mode,
        tls_cert=_path(tls_cert),
        tls_key=_path(tls_key),
    )
    ring = KeyRing(api_key or settings.api_key(), _path(keys))
    address.check(bool(ring))
    address.check_free()
    return address, ring


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _connections() -> int:
    """Maximum number of connections within this process's limit of open files."""
    most = ConnectionLimits().connections
    if sys.platform == "win32":  # its sockets are no files
        return most
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return most
    left = limit - len(list(Path("/dev/fd").iterdir())) - _BACKLOG - _OTHER_FILES
    return max(1, min(most, left))
