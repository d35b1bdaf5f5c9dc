"""`wherry serve`."""

from __future__ import annotations

from typing import Any

import click

from . import interrupts, options, serving_options


@click.command("serve")
@options.model
@serving_options.place
@click.option("--model-name", help="What clients call it; default: the model's name.")
@serving_options.access
@serving_options.limits
@serving_options.operation
@click.option("--max-batch", type=click.IntRange(1), help="Requests decoded together.")
@options.load
def serve_command(model: str, otlp_endpoint: str | None, **typed: Any) -> None:
    """Serve MODEL over HTTP as OpenAI's API: /v1/chat/completions, /v1/completions, /v1/models.

    A browser finds a page to chat at /, Prometheus /metrics, programs /openapi.json.
    """
    from wherry.runtime.server import serving
    from wherry.runtime.server.observing.otlp import export_to

    loading, given = options.split(typed)
    serving.checked(**given)  # before minutes of compiling
    if otlp_endpoint:
        export_to(otlp_endpoint)
    engine = options.opened(model, loading)

    def on_ready(url: str) -> None:
        path = "/v1" if url.startswith("http") else ""
        click.echo(f"Serving {model} at {url}{path}", err=True)

    with engine:
        interrupts.raise_instead()
        serving.serve(engine, on_ready=on_ready, **given)
