"""`wherry package`."""

from __future__ import annotations

from pathlib import Path

import click

from . import completion, options
from .progress import shown


@click.command("package")
@click.argument(
    "models", nargs=-1, required=True, metavar="MODEL...", shell_complete=completion.models
)
@click.option(
    "--target",
    "targets",
    type=click.Choice(["webgpu", "wasm"]),
    multiple=True,
    default=["webgpu"],
    show_default=True,
    help="What runs it in the browser: its GPU, or its CPU. With both, the GPU where there is one.",
)
@options.quant
@options.limits
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the site."
)
def package_command(
    models: tuple[str, ...],
    targets: tuple[str, ...],
    quant: str | None,
    output: Path,
    context: int | None,
    max_batch: int | None,
    prefill_chunk: int | None,
) -> None:
    """Write a site to chat with MODEL... in a browser: for any web server, without a program on it.

    Page, compiled models and weights. Prints the folder; `wherry web DIR` shows it on this machine.
    """
    from wherry.cache import safe
    from wherry.compiler.api import Limits, ensure_artifact, name_of
    from wherry.web import site

    site.check_new(output)
    site.page_folder()
    limits = Limits(context=context, max_batch=max_batch, prefill_chunk=prefill_chunk)
    folders: dict[str, Path] = {}
    with shown() as progress:
        for model in models:
            for target in targets:
                address = f"{site.MODELS}/{safe(name_of(model))}-{target}/"
                folders[address] = ensure_artifact(
                    model,
                    target=target,
                    quant=quant,
                    limits=limits,
                    out=output / address,
                    progress=progress,
                )
    site.copy_page(output)
    site.write_index(output, folders)
    click.echo(output)
