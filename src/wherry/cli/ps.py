"""The command `wherry ps`, which lists this machine's servers and their loaded models."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from typing import Any

import click

from wherry.base import settings
from wherry.cache import running
from wherry.cache.running import Server

from . import columns
from .quantities import ago, size

_SECONDS = 2.0  # timeout in seconds of a request to a server


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def ps_command(as_json: bool) -> None:
    """List this machine's servers, and the models they have loaded.

    It finds servers with the same cache (WHERRY_CACHE). For a server with a key, set WHERRY_API_KEY
    to that key.
    """
    rows = asyncio.run(_look(running.servers()))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo("No server is running. Type: wherry serve MODEL", err=True)
        return
    cells = [("pid", "url", "began", "memory", "models")]
    for row in rows:
        models = row["problem"] or ", ".join(row["models"]) or "none is loaded"
        memory = size(row["memory"]) if row["memory"] else ""
        began = ago(time.time() - row["began"])
        cells.append((str(row["pid"]), row["url"], began, memory, models))
    for line in columns.lines(cells, right={0, 3}):
        click.echo(line)


async def _look(servers: list[Server]) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*map(_row, servers)))


async def _row(server: Server) -> dict[str, Any]:
    """Describe a server and its models: the loaded ones if it reports them, else all."""
    from wherry.bench.connection import TargetAddress
    from wherry.bench.http_target import HttpTarget
    from wherry.errors import WherryError

    row: dict[str, Any] = asdict(server) | {"memory": _memory(server.pid), "problem": None}
    row["models"] = [server.model]
    if not server.url.startswith("http"):
        return row
    target = HttpTarget(TargetAddress.parse(server.url), "", settings.api_key(), _SECONDS)
    try:
        row["models"] = await target.loaded()
    except WherryError as e:
        row["problem"] = str(e).splitlines()[0]
    finally:
        await target.close()
    return row


def _memory(pid: int) -> int | None:
    """Return a process's resident memory in bytes; None if the system does not report it."""
    from wherry.runtime.load.program_memory import resident

    return resident(process=str(pid))
