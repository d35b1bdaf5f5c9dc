"""The command `wherry pull`, which prepares everything that a run needs."""

from __future__ import annotations

from typing import Any

import click

from wherry.base.progress import shown

from . import options


@click.command("pull")
@options.model
@click.option("--only-download", is_flag=True, help="Neither convert nor compile.")
@options.quant
@options.kv_dtype
@options.activations
@options.target
def pull_command(model: str, only_download: bool, **typed: Any) -> None:
    """Download, convert and compile MODEL ahead of a run.

    `wherry run MODEL` then starts at once. Prints the folder. An interrupted download resumes.
    """
    from wherry.base import settings
    from wherry.compiler.api import ensure_artifact
    from wherry.hub import source

    given = {name: value for name, value in typed.items() if value is not None}
    with shown() as progress:
        if only_download:
            hub = settings.cache_dir() / "hub"
            folder = source.resolve(model, cache=hub, progress=progress)
        else:
            folder = ensure_artifact(model, progress=progress, **given)
    click.echo(folder)
