"""The commands `wherry rm` and `wherry cache prune`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import click

from wherry.base import settings
from wherry.base.locks import InUseError
from wherry.cache import pruning
from wherry.cache.entries import Entry, safe
from wherry.errors import UsageError

from . import columns, completion
from .listing import named
from .quantities import size

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


class _Duration(click.ParamType[float]):
    """Option type: a duration such as 30d, 12h, 5m, 0s, in seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = re.fullmatch(r"(\d+)([dhms])", str(value))
        if not match:
            self.fail(
                f"{value!r} is not a duration; type a number and d, h, m or s: 30d", param, ctx
            )
        return float(int(match[1]) * _SECONDS[match[2]])


dry_run = click.option(
    "--dry-run", is_flag=True, help="List what would be removed, and remove nothing."
)


@click.command("rm")
@click.argument("name", shell_complete=completion.cached)
@dry_run
def rm_command(name: str, dry_run: bool) -> None:
    """Remove model NAME from the cache.

    This removes its compiled folders, its weights and its download, for all targets and schemes.
    Names are those of `wherry list`.
    """
    short = safe(name.removeprefix("hf://").partition("@")[0])
    entries = named()
    chosen = [entry for entry in entries if entry.name and entry.short_name == short]
    if not chosen:
        names = ", ".join(sorted({entry.name for entry in entries if entry.name})) or "nothing"
        raise UsageError(f"The cache has no {name!r}; it has {names}. Type: wherry list")
    if dry_run:
        _would_go(chosen)
        return
    models = [entry for entry in chosen if entry.kind == "model"]
    # Compiled models are removed first, because one in use protects its weights and its download.
    count, left = _remove(models)
    if not left:
        more, left = _remove([entry for entry in chosen if entry.kind != "model"])
        count += more
    click.echo(f"{size(count)} freed in {settings.cache_dir()}", err=True)
    if left:
        raise UsageError(f"Not all of {name} could be removed, see above.")


@click.group("cache")
def cache_command() -> None:
    """Maintain the cache."""


@cache_command.command("prune")
@click.option(
    "--older-than",
    type=_Duration(),
    default="30d",
    show_default=True,
    metavar="TIME",
    help="Time since the last use: 30d, 12h, 0s (everything).",
)
@dry_run
def prune_command(older_than: float, dry_run: bool) -> None:
    """Remove entries that were not used for long, and files of killed processes.

    Entries that a running process makes or uses stay.
    """
    old = {entry.path for entry in pruning.unused(older_than)}
    chosen = [entry for entry in named() if entry.path in old]
    leftovers = pruning.leftovers()
    for path in leftovers:
        click.echo(f"leftover  {path}")
    if dry_run:
        _would_go(chosen)
        return
    for path in leftovers:
        pruning.discard(path)
    count, _ = _remove(chosen)
    click.echo(f"{size(count)} freed in {settings.cache_dir()}", err=True)


def _would_go(chosen: Sequence[Entry]) -> None:
    for line in columns.lines([(e.kind, e.name, e.about) for e in chosen]):
        click.echo(line)
    click.echo(f"{size(pruning.freed(chosen))} would be freed in {settings.cache_dir()}", err=True)


def _remove(chosen: Iterable[Entry]) -> tuple[int, int]:
    """Remove entries, printing a line each; return freed bytes, and how many entries are in use."""
    count = left = 0
    for entry in chosen:
        try:
            count += pruning.remove(entry)
            click.echo(f"{entry.kind:<9}  {entry.name}  {entry.about}".rstrip())
        except FileNotFoundError:  # another process has removed the entry
            continue
        except (InUseError, OSError) as e:
            left += 1
            click.echo(f"Left: {e}", err=True)
    return count, left
