"""The options of a server: one record for the application, the command line and Ray Serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from ..load.options import LoadOptions
from .defaults import MAX_BODY, MAX_QUEUE, STUCK_SECONDS
from .guard.keys import KeyRing
from .wire.http_protocol import ConnectionLimits


class AppOptions(TypedDict, total=False):
    """Options of the server's application."""

    model_name: str | None  # in requests, where there is one model; None: the engine's name
    # Clients must send it to every path except /health and /ready; None: no key. `serve` takes
    # WHERRY_API_KEY then.
    api_key: str | None
    # A file of further keys with limits of their own, or a KeyRing, which replaces `api_key`.
    keys: KeyRing | str | Path | None
    cors: Sequence[str] | None  # origins whose pages may send requests ("*": all); None: none
    # Accepted Host names besides localhost and IP addresses ("*": all); ignored if there are keys.
    hosts: Sequence[str] | None
    max_body: int  # bytes, 16 MiB; a longer request is a 413
    max_queue: int  # outputs that may wait, 256; a request beyond that is a 429
    # Seconds; a request that takes longer ends with a 504. Clients ask for less with
    # X-Request-Timeout. None: no limit.
    request_timeout: float | None
    stuck_seconds: float  # of work without progress, 120; then /health is a 503
    allow_pull: bool  # clients may download and compile models (/api/pull), into a Catalog


class ServeOptions(AppOptions, LoadOptions, total=False):
    """AppOptions, LoadOptions, and how a server listens and ends."""

    uds: str | Path | None  # path of a Unix socket, instead of host and port
    uds_mode: int  # file mode of the socket; 0o600
    tls_cert: str | Path | None  # PEM file with a certificate; the server then answers only HTTPS
    tls_key: str | Path | None  # PEM file with its key; None: it is in tls_cert
    # End the process with exit code 1 when the engine has failed or is stuck, for supervisors that
    # restart it.
    exit_when_stuck: bool
    log_format: str  # "text", the default, or "json": a line for each request
    # Of connections; None: as many as this process may open files, at most 512.
    limits: ConnectionLimits | None
    drain_seconds: int  # time for running requests after the first signal; 30
    on_ready: Callable[[str], None] | None  # called with the server's URL when it listens


DEFAULTS: AppOptions = {
    "model_name": None,
    "api_key": None,
    "keys": None,
    "cors": None,
    "hosts": None,
    "max_body": MAX_BODY,
    "max_queue": MAX_QUEUE,
    "request_timeout": None,
    "stuck_seconds": STUCK_SECONDS,
    "allow_pull": False,
}


def checked_app(options: AppOptions) -> AppOptions:
    """The options with the defaults of those that are not given.

    Raises:
        TypeError: an option is unknown.
    """
    _check(options, AppOptions, "an application")
    return cast(AppOptions, {**DEFAULTS, **options})


def checked_serve(options: ServeOptions) -> tuple[AppOptions, LoadOptions, Mapping[str, Any]]:
    """The options by whose they are: the application's, a load's, and the server's own.

    Raises:
        TypeError: an option is unknown.
    """
    _check(options, ServeOptions, "a server")
    app, load = (_of(kind, options) for kind in (AppOptions, LoadOptions))
    own = {n: v for n, v in options.items() if n not in {*app, *load}}
    return cast(AppOptions, {**DEFAULTS, **app}), cast(LoadOptions, load), own


def _of(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in kind.__annotations__}


def _check(options: Mapping[str, Any], kind: type, what: str) -> None:
    if unknown := sorted(set(options) - set(kind.__annotations__)):
        raise TypeError(
            f"unknown options {', '.join(unknown)}; {what} takes "
            f"{', '.join(sorted(kind.__annotations__))}"
        )
