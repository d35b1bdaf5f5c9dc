"""The command `wherry list`, which lists the cache."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from wherry.base import settings
from wherry.cache.entries import Entry, entries

if TYPE_CHECKING:
    from wherry.compiler.supported import Family


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.option("--supported", is_flag=True, help="List the supported model families.")
def list_command(as_json: bool, supported: bool) -> None:
    """List the content of the cache, with size and last use.

    The entries are compiled models, weights and downloads. A file that two entries share (a
    compiled model links its weights) counts once. `wherry rm NAME` and `wherry cache prune` free
    space. --supported lists the model families, by the model_type in config.json, and the targets
    on which tests compare them with a reference.
    """
    if supported:
        _list_supported(as_json)
        return
    found = named()
    if as_json:
        click.echo(json.dumps([_record(entry) for entry in found], indent=2))
        return
    if not found:
        click.echo("The cache is empty. Type: wherry run demo", err=True)
        return
    click.echo(f"{'kind':<9} {'name':<28} {'what':<30} {'size':>10}  last use")
    for entry in found:
        click.echo(
            f"{entry.kind:<9} {entry.name:<28} {entry.about:<30} {size(entry.bytes):>10}  "
            f"{ago(time.time() - entry.last_used)}"
        )
    total = size(sum(entry.bytes for entry in found))
    click.echo(f"{total} in all, in {settings.cache_dir()}", err=True)


def _list_supported(as_json: bool) -> None:
    from wherry.compiler.supported import rows

    if as_json:
        click.echo(json.dumps([row.record() for row in rows()], indent=2))
        return
    widths = [max(len(t) for t in column) for column in zip(*map(_cells, rows()), strict=True)]
    titles = ("model_type", "models", "context", "tool calls")
    widths = [max(w, len(t)) for w, t in zip(widths, titles, strict=True)]
    for cells in (titles, *map(_cells, rows())):
        click.echo(_line(cells, widths).rstrip())


def _cells(row: Family) -> tuple[str, ...]:
    return (row.model_type, row.known.models, row.known.context, row.known.tools or "-")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))


def named() -> list[Entry]:
    """List all entries; packed weights get the name of their model, if it exists."""
    from wherry.runtime.load.loading import pack_dir

    found = entries()
    owners = {pack_dir(e.manifest).name: e for e in found if e.manifest}
    for entry in found:
        if entry.kind == "packed":
            owner = owners.get(entry.path.name)
            entry.name = owner.name if owner else ""
            entry.about = owner.about if owner else "of a model that is gone"
    return found


def _record(entry: Entry) -> dict[str, Any]:
    record = {
        "kind": entry.kind,
        "name": entry.name,
        "about": entry.about,
        "bytes": entry.bytes,
        "last_used": datetime.fromtimestamp(entry.last_used, timezone.utc).isoformat(),
        "folder": str(entry.path),
    }
    if manifest := entry.manifest:
        record |= {
            "quantization": manifest.quantization,
            "target": manifest.target["name"],
            "context": manifest.deployment["context"],
        }
    return record


def size(count: int) -> str:
    """Format a number of bytes for display."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if count >= scale / 10:
            return f"{count / scale:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"


def ago(seconds: float) -> str:
    """Format a past time for display, as "3 days ago"."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "now"
