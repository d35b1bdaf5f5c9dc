"""The command `wherry serve`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wherry.cache import running

from . import interrupts, options, serving_models, serving_options

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine
    from wherry.runtime.server.catalog.catalog import Catalog


@click.command("serve")
@click.argument("model", required=False, type=options.MODEL)
@serving_models.options
@serving_options.place
@click.option("--model-name", help="Name for clients; default: the model's name.")
@serving_options.access
@serving_options.limits
@serving_options.operation
@click.option("--max-batch", type=click.IntRange(1), help="Requests decoded together.")
@options.load
def serve_command(
    model: str | None, place: Path | None, otlp_endpoint: str | None, **typed: Any
) -> None:
    """Serve MODEL over HTTP, with the APIs of OpenAI and others.

    OpenAI's and Anthropic's APIs are at /v1/, Ollama's at /api/, a chat page at /, metrics for
    Prometheus at /metrics, the API's description at /openapi.json. --models serves several models.
    """
    from wherry.runtime.server import serving
    from wherry.runtime.server.observing.otlp import export_to

    from . import serving_lines

    loading, given = options.split(typed)
    serving_models.check(model, place, given)
    serving.checked(**given)  # checks options before a compilation that takes minutes
    if otlp_endpoint:
        export_to(otlp_endpoint)
    engine: MLCEngine | Catalog
    if place is not None:
        engine = serving_models.opened(place, given, loading)
    else:
        assert model is not None
        engine = options.opened(model, loading)

    with engine, ExitStack() as listening:

        def on_ready(url: str) -> None:
            for line in serving_lines.lines(url, str(model or place), engine):
                click.echo(line, err=True)
            listening.enter_context(running.announced(url, str(model or place)))

        interrupts.raise_instead()
        serving.serve(engine, on_ready=on_ready, **given)
