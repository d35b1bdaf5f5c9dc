"""The command `wherry web`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("web")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
def web_command(folder: Path, host: str, port: int) -> None:
    """Serve FOLDER to browsers, which run its models.

    It is for trying a site on this machine; in production any server of static files will do.
    FOLDER is a site of `wherry package`, a model compiled with --target webgpu or wasm, or a folder
    of such models. Prints the address.
    """
    from wherry.web import server

    server.serve(folder, host=host, port=port, on_ready=click.echo)
