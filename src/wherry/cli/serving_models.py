"""Options of `wherry serve --models`, and the catalog of its models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wherry.base.progress import shown
from wherry.runtime.load.options import LoadOptions
from wherry.runtime.server.catalog.quantities import bytes_of, seconds_of

from .options import stack

if TYPE_CHECKING:
    from wherry.runtime.server.catalog.catalog import Catalog


class _Quantity(click.ParamType[Any]):
    """Option type: a quantity that a given function parses."""

    def __init__(self, name: str, read: Callable[[object], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value)
        except ValueError as e:
            self.fail(f"{value!r}: {e}", param, ctx)


options = stack(
    click.option(
        "--models",
        "place",
        metavar="FILE|FOLDER",
        type=click.Path(exists=True, path_type=Path),
        help="Serve several models, each loaded at its first request: those in a YAML file "
        "(docs/server.md), or in a folder. Options of models are then defaults.",
    ),
    click.option(
        "--memory-limit",
        metavar="SIZE",
        type=_Quantity("size", bytes_of),
        help="Memory of all loaded models: 12GB; default: free memory. The least recently used "
        "model is unloaded first.",
    ),
    click.option(
        "--keep-alive",
        metavar="TIME",
        type=_Quantity("duration", seconds_of),
        help="How long a model stays loaded after its last answer: 30s, 1h30m; -1: for "
        "ever; default: 5m.",
    ),
    click.option(
        "--allow-pull",
        is_flag=True,
        help="Let clients download and compile models of the Hugging Face hub (POST /api/pull).",
    ),
)


def check(model: str | None, place: Path | None, given: dict[str, Any]) -> None:
    """Reject options that contradict each other.

    Raises:
        click.UsageError: the message says what to type.
    """
    if (model is None) == (place is None):
        raise click.UsageError(
            "Type one of: wherry serve MODEL, wherry serve --models FILE|FOLDER."
        )
    alone = {"memory_limit": "--memory-limit", "keep_alive": "--keep-alive"}
    alone |= {"allow_pull": "--allow-pull"} if given.get("allow_pull") else {}
    wrong = [option for name, option in alone.items() if given.get(name) is not None]
    if place is None and wrong:
        raise click.UsageError(f"{', '.join(wrong)}: for several models; give --models, too.")
    if place is not None and given.get("model_name"):
        raise click.UsageError("--model-name is for one MODEL; name them in the file of --models.")


def opened(place: Path, given: dict[str, Any], loading: LoadOptions) -> Catalog:
    """Open the catalog: compile all models, and preload some."""
    from wherry.runtime.server.catalog.catalog import opened

    with shown() as progress:
        return opened(
            place,
            memory_limit=given.pop("memory_limit", None),
            keep_alive=given.pop("keep_alive", None),
            progress=progress,
            options=loading,
        )
