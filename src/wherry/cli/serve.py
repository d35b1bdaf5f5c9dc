"""`wherry serve`."""

from __future__ import annotations

from typing import Any

import click

from . import interrupts, options


@click.command("serve")
@options.model
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--model-name", help="What clients call it; default: the model's name.")
@click.option("--api-key", help="Ask clients for this key; default: WHERRY_API_KEY.")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="Allow pages of ORIGIN; repeatable.")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name of this machine that clients use, where no key is asked for; repeatable.",
)
@click.option("--max-batch", type=click.IntRange(1), help="Requests decoded together.")
@options.load
def serve_command(model: str, **typed: Any) -> None:
    """Serve MODEL over HTTP as OpenAI's API: /v1/chat/completions, /v1/completions, /v1/models."""
    from wherry import settings
    from wherry.runtime.server.serving import check_host, serve

    loading, serving = options.split(typed)
    api_key = serving.setdefault("api_key", settings.api_key())
    check_host(serving["host"], api_key)  # before minutes of compiling
    engine = options.opened(model, loading)

    def on_ready(url: str) -> None:
        click.echo(f"Serving {model} at {url}/v1", err=True)

    with engine:
        interrupts.raise_instead()
        serve(engine, on_ready=on_ready, **serving)
