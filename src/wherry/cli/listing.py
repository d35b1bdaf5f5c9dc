"""The command `wherry list`, which lists the cache."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from wherry.base import settings
from wherry.cache.entries import Entry, entries
from wherry.errors import UsageError

from . import columns
from .quantities import ago, size

if TYPE_CHECKING:
    from wherry.compiler.supported import Family


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.option("--supported", is_flag=True, help="List the supported model families.")
@click.option("--fits", is_flag=True, help="List models to begin with that fit into free memory.")
def list_command(as_json: bool, supported: bool, fits: bool) -> None:
    """List the content of the cache, with size and last use.

    The entries are compiled models, weights and downloads. A file that two entries share (a
    compiled model links its weights) counts once. `wherry rm NAME` and `wherry cache prune` free
    space. --supported lists the model families, by the model_type in config.json, and the targets
    on which tests compare them with a reference. --fits lists some models that this machine has
    memory for, by the names to type, the largest first (docs/which-model.md).
    """
    if supported and fits:
        raise UsageError("--supported lists families, --fits models. Type one of them.")
    if fits:
        _list_fitting(as_json)
        return
    if supported:
        _list_supported(as_json)
        return
    entries = named()
    if as_json:
        click.echo(json.dumps([_record(entry) for entry in entries], indent=2))
        return
    if not entries:
        click.echo("The cache is empty. Type: wherry run demo", err=True)
        return
    rows = [("kind", "name", "what", "size", "last use")]
    for entry in entries:
        used = ago(time.time() - entry.last_used)
        rows.append((entry.kind, entry.name, entry.about, size(entry.bytes), used))
    for line in columns.lines(rows, right={3}):
        click.echo(line)
    total = size(sum(entry.bytes for entry in entries))
    click.echo(f"{total} in all, in {settings.cache_dir()}", err=True)


def _list_fitting(as_json: bool) -> None:
    from wherry.compiler.recommended import CONTEXT, fitting
    from wherry.runtime.load.memory import SHARE_REQUESTED

    free = _free()
    fitting_on = {device: fitting(SHARE_REQUESTED * room) for device, room in free.items()}
    largest = max(fitting_on.values(), key=len)
    on = {m.name: [device for device, models in fitting_on.items() if m in models] for m in largest}
    if as_json:
        records = [
            {"model": m.name, "weights": m.weights, "memory": m.memory, "devices": on[m.name]}
            | {"good_at": m.good_at}
            for m in largest
        ]
        click.echo(json.dumps(records, indent=2))
        return
    rooms = ", ".join(f"{device} has {size(room)}" for device, room in free.items())
    click.echo(f"Free memory: {rooms}. With {CONTEXT:,} tokens of context fit:", err=True)
    rows = [("model", "weights", "memory", "fits", "good at")]
    rows += [
        (m.name, size(m.weights), size(m.memory), ", ".join(on[m.name]), m.good_at) for m in largest
    ]
    for line in columns.lines(rows, right={1, 2}):
        click.echo(line)
    if largest:
        click.echo(f"Type: wherry run {largest[0].name}", err=True)


def _free() -> dict[str, int]:
    """Return the free bytes of the CPU's memory, and of each GPU that has its own."""
    from wherry.errors import WherryError
    from wherry.machine import devices
    from wherry.machine.host_memory import available

    free = {"cpu": available() or 0}
    for kind in devices.KINDS:
        try:
            listed = devices.list_devices(kind)
        except WherryError:  # no driver or no plugin
            continue
        for index, device in enumerate(listed):
            if device.discrete and not device.software:
                left = device.available_bytes
                free[f"{kind}:{index}"] = device.memory_bytes if left is None else left
    return free


def _list_supported(as_json: bool) -> None:
    from wherry.compiler.supported import rows

    if as_json:
        click.echo(json.dumps([row.record() for row in rows()], indent=2))
        return
    titles = ("model_type", "models", "context", "tool calls")
    for line in columns.lines([titles, *map(_cells, rows())]):
        click.echo(line)


def _cells(row: Family) -> tuple[str, ...]:
    return (row.model_type, row.known.models, row.known.context, row.known.tools or "-")


def named() -> list[Entry]:
    """List all entries; packed weights get the name of their model, if it exists."""
    from wherry.runtime.load.loading import pack_dir

    result = entries()
    owners = {pack_dir(e.manifest).name: e for e in result if e.manifest}
    for entry in result:
        if entry.kind == "packed":
            owner = owners.get(entry.path.name)
            entry.name = owner.name if owner else ""
            entry.about = owner.about if owner else "of a model that is gone"
    return result


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
