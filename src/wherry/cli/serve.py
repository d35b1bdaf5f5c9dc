"""`wherry serve`."""

from __future__ import annotations

import click

from . import options
from .progress import shown


@click.command("serve")
@options.model
@options.quant
@options.kv_dtype
@options.activations
@options.target
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--model-name", help="What clients call it; default: the model's name.")
@click.option("--api-key", help="Ask clients for this key; default: WHERRY_API_KEY.")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="Allow pages of ORIGIN; repeatable.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A name of this machine that clients use, where no key is asked for; repeatable.",
)
@click.option("--max-batch", type=click.IntRange(1), help="Requests decoded together.")
@options.engine
def serve_command(
    model: str,
    quant: str | None,
    kv_dtype: str,
    activations: str,
    target: str,
    host: str,
    port: int,
    model_name: str | None,
    api_key: str | None,
    cors: tuple[str, ...],
    allow_host: tuple[str, ...],
    max_batch: int | None,
    context: int | None,
    threads: int | None,
) -> None:
    """Serve MODEL over HTTP as OpenAI's API: /v1/chat/completions, /v1/completions, /v1/models."""
    from wherry import settings
    from wherry.runtime.serving import serve

    with shown() as progress:
        serve(
            model,
            host=host,
            port=port,
            model_name=model_name,
            api_key=api_key or settings.api_key(),
            cors=cors,
            hosts=allow_host,
            target=target,
            quant=quant,
            kv_dtype=kv_dtype,
            activations=activations,
            progress=progress,
            on_ready=lambda url: click.echo(f"Serving {model} at {url}/v1", err=True),
            **options.given(context=context, threads=threads, max_batch=max_batch),
        )
