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
    """The options of the server's ASGI application."""

    # the model's name in requests if the server has one model; None: the engine's name
    model_name: str | None
    # The key that clients must send to every path except /health and /ready; None: no key, or
    # WHERRY_API_KEY in `serve`.
    api_key: str | None
    # A file of further keys, each with limits, or a KeyRing, which replaces `api_key`.
    keys: KeyRing | str | Path | None
    cors: Sequence[str] | None  # origins whose pages may send requests (CORS; "*": all); None: none
    # Accepted Host names besides localhost and IP addresses ("*": all); ignored if there are keys.
    hosts: Sequence[str] | None
    # Hosts from which images of requests are fetched: "example.org", "*.example.org" or an IP
    # address, each with a port if it is not the scheme's; "*": all public ones. None: none.
    media_hosts: Sequence[str] | None
    max_body: int  # maximum bytes of a request's body, 16 MiB by default; a longer body is a 413
    # maximum number of waiting outputs, 256 by default; a request beyond that is a 429
    max_queue: int
    # Seconds after which a running request ends with a 504; None: no limit. Clients ask for less
    # with X-Request-Timeout.
    request_timeout: float | None
    # seconds of work without progress after which /health is a 503; 120 by default
    stuck_seconds: float
    # whether clients may download and compile models (/api/pull), which a Catalog then serves
    allow_pull: bool


class ServeOptions(AppOptions, LoadOptions, total=False):
    """AppOptions, LoadOptions, and options for how a server listens and ends."""

    uds: str | Path | None  # path of a Unix socket, instead of host and port
    uds_mode: int  # file mode of the Unix socket; 0o600 by default
    # PEM file with a certificate; with it the server answers only HTTPS
    tls_cert: str | Path | None
    # PEM file with the certificate's private key; None: the key is in tls_cert
    tls_key: str | Path | None
    # Whether the process ends with exit code 1 when the engine has failed or is stuck, for
    # supervisors that restart it.
    exit_when_stuck: bool
    # format of the request log: "text", the default, or "json"; a line for each request
    log_format: str
    # Limits of connections; None: as many connections as this process may open files, at most 512.
    limits: ConnectionLimits | None
    # seconds that running requests may take after the first signal; 30 by default
    drain_seconds: int
    on_ready: Callable[[str], None] | None  # callback with the server's URL when it listens


DEFAULTS: AppOptions = {
    "model_name": None,
    "api_key": None,
    "keys": None,
    "cors": None,
    "hosts": None,
    "media_hosts": None,
    "max_body": MAX_BODY,
    "max_queue": MAX_QUEUE,
    "request_timeout": None,
    "stuck_seconds": STUCK_SECONDS,
    "allow_pull": False,
}


def checked_app(options: AppOptions) -> AppOptions:
    """Return the options, with defaults for those that are not given.

    Raises:
        TypeError: an option is unknown.
    """
    _check(options, AppOptions, "an application")
    return cast(AppOptions, {**DEFAULTS, **options})


def checked_serve(options: ServeOptions) -> tuple[AppOptions, LoadOptions, Mapping[str, Any]]:
    """Return the options in three groups: the application's, a load's, and the server's own.

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
