"""`wherry list`: what the cache holds."""

from __future__ import annotations

import json

import click

from wherry import settings
from wherry.artifact import read_manifest
from wherry.errors import ArtifactError


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_command(as_json: bool) -> None:
    """List the compiled models of the cache."""
    rows = []
    for folder in sorted((settings.cache_dir() / "models").glob("[!.]*")):
        try:
            manifest = read_manifest(folder)
        except ArtifactError as e:
            click.echo(f"{folder}: {str(e).splitlines()[0]}", err=True)
            continue
        size = sum(record.size for record in manifest.files.values())
        rows.append(
            {
                "name": manifest.name,
                "quantization": manifest.quantization,
                "target": manifest.target["name"],
                "context": manifest.deployment["context"],
                "bytes": size,
                "folder": str(folder),
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo("Nothing is compiled yet. Type: wherry run demo", err=True)
    for row in rows:
        click.echo(
            f"{row['name']:<24} {row['quantization']:<8} {row['target']:<20} "
            f"{row['bytes'] / 1e6:>9.1f} MB  {row['folder']}"
        )
