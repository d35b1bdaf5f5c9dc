"""`wherry package`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from . import completion, options
from .progress import shown


def _variants(
    targets: tuple[str, ...], quants: tuple[str, ...]
) -> Iterator[tuple[str, str | None]]:
    """What is made of a model; of schemes for CPUs one, since all of them run everywhere."""
    for target in targets:
        for quant in (quants[:1] if target == "wasm" else quants) or (None,):
            yield target, quant


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
@click.option(
    "--quant",
    "quants",
    metavar="SCHEME",
    multiple=True,
    help="How weights are stored, as in `wherry compile`. Of several a browser takes the best that "
    "its GPU can run: q4f16_1 wants one with 16-bit floats, q4f32_1 runs on all.",
)
@options.limits
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the site."
)
def package_command(
    models: tuple[str, ...],
    targets: tuple[str, ...],
    quants: tuple[str, ...],
    output: Path,
    context: int | None,
    max_batch: int | None,
    prefill_chunk: int | None,
) -> None:
    """Write a site to chat with MODEL... in a browser: for any web server, without a program on it.

    Page, compiled models and weights. Prints the folder; `wherry web DIR` shows it on this machine.
    Each --target is made with each --quant; a browser fetches the one that suits it.
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
            for target, quant in _variants(targets, quants):
                variant = target if len(quants) < 2 else f"{target}-{quant}"
                address = f"{site.MODELS}/{safe(name_of(model))}-{variant}/"
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
