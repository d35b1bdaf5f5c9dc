"""Options of `wherry serve` that do not concern a model: access, address, limits, operation."""

from __future__ import annotations

from typing import Any

import click

from .options import stack


class _Permissions(click.ParamType[int]):
    """Option type: file permissions in octal, as for chmod: 660."""

    name = "octal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            mode = int(value, 8)
        except ValueError:
            mode = -1
        if not 0 <= mode <= 0o777:
            self.fail(f"{value!r} is not a file mode; type one as for chmod: 660", param, ctx)
        return mode


def _media_hosts(
    _ctx: click.Context, _param: click.Parameter, hosts: tuple[str, ...]
) -> tuple[str, ...]:
    """Check the hosts before a model is loaded."""
    if hosts:
        from wherry.runtime.server.guard.media_hosts import MediaHosts

        MediaHosts(hosts)
    return hosts


_FILE = click.Path(dir_okay=False)

access = stack(
    click.option("--api-key", help="Key that clients must send; default: WHERRY_API_KEY."),
    click.option(
        "--keys",
        metavar="FILE",
        type=_FILE,
        help="YAML file of keys with limits (docs/server.md); SIGHUP reads it again.",
    ),
    click.option(
        "--cors", multiple=True, metavar="ORIGIN", help="Allow pages of ORIGIN; repeatable."
    ),
    click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        metavar="NAME",
        help="A host name of this server, for a server without keys; repeatable.",
    ),
    click.option(
        "--media-hosts",
        multiple=True,
        metavar="HOST",
        callback=_media_hosts,
        help="A host whose images requests may name by URL (example.org, *.example.org, "
        '10.0.0.5:8080; "*": all public ones); repeatable. Default: none.',
    ),
)
place = stack(
    click.option("--host", default="127.0.0.1", show_default=True),
    click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535)),
    click.option(
        "--uds",
        metavar="PATH",
        type=_FILE,
        help="Listen on a Unix socket instead of host and port.",
    ),
    click.option(
        "--uds-permissions",
        "uds_mode",
        metavar="OCTAL",
        type=_Permissions(),
        default="600",
        show_default=True,
        help="File mode of the socket.",
    ),
    click.option(
        "--tls-cert",
        metavar="FILE",
        type=_FILE,
        help="Answer HTTPS with the certificate in FILE (PEM); SIGHUP reads it again.",
    ),
    click.option(
        "--tls-key",
        metavar="FILE",
        type=_FILE,
        help="The certificate's key; default: in the same file.",
    ),
)
limits = stack(
    click.option(
        "--max-body", type=click.IntRange(1), help="Maximum bytes of a request; default: 16 MiB."
    ),
    click.option(
        "--max-queue",
        type=click.IntRange(0),
        help="Maximum waiting outputs besides the running ones; default: 256. More are refused "
        "with a 429.",
    ),
    click.option(
        "--request-timeout",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        help="End requests that take longer; clients ask for less with X-Request-Timeout.",
    ),
)
operation = stack(
    click.option(
        "--drain-seconds",
        metavar="SECONDS",
        type=click.IntRange(0),
        help="Time for running requests after SIGTERM; default: 30. A second signal ends them.",
    ),
    click.option(
        "--stuck-seconds",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        help="Time without progress after which /health is a 503; default: 120.",
    ),
    click.option(
        "--exit-when-stuck",
        is_flag=True,
        help="End with exit code 1 when the engine is stuck or has failed, for supervisors.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of the log, a line for each request without its content.",
    ),
    click.option(
        "--otlp-endpoint",
        metavar="URL",
        help="Send OpenTelemetry spans to URL, such as http://localhost:4318/v1/traces.",
    ),
)
