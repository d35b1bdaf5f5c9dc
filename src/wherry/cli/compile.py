"""The commands `wherry convert` and `wherry compile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wherry.base.progress import shown

from . import options, summary

if TYPE_CHECKING:
    from wherry.base.progress import Progress


@click.command("convert")
@options.model
@options.quant
@options.calibration
@options.mmproj
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder; default: the cache.")
def convert_command(
    model: str, quant: str | None, calibration: str, mmproj: str | None, output: Path | None
) -> None:
    """Write the weights of MODEL in the layout of a scheme.

    Prints the folder. An interrupted conversion resumes.
    """
    from wherry.compiler.api import ModelParts, convert_model

    parts = ModelParts(mmproj=mmproj)
    with shown() as progress:
        folder = convert_model(
            model, output, quant=quant, calibration=calibration, parts=parts, progress=progress
        )
    click.echo(folder)


@click.command("compile")
@options.model
@options.target
@options.host
@options.quant
@options.calibration
@options.kv_dtype
@options.activations
@options.mtp
@options.draft_head
@options.mmproj
@click.option(
    "--format",
    type=click.Choice(["auto", "library", "objects"]),
    default="auto",
    show_default=True,
    help="The compiled code: a shared library, which a C++ compiler links, or objects, which "
    "Wherry links when it loads the model. auto is a library if the compiler is installed.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder; default: the cache.")
@options.limits
@click.option(
    "--card",
    is_flag=True,
    help="Measure the quality card, too, as `wherry quality` does. It takes longer than the rest: "
    "the float model is converted, compiled and run.",
)
@click.option(
    "--debug-dump",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the module after each phase, and the source of the device's code, to DIR.",
)
def compile_command(
    model: str,
    output: Path | None,
    context: int | None,
    max_batch: int | None,
    prefill_chunk: int | None,
    card: bool,
    debug_dump: Path | None,
    **choices: Any,
) -> None:
    """Compile MODEL to a folder that any runtime of Wherry loads.

    Prints the folder, and on stderr its content. Equal inputs are compiled only once.
    """
    from wherry.artifact.manifest import read_manifest
    from wherry.compiler.api import Limits, ensure_artifact

    with shown() as progress:
        folder = ensure_artifact(
            model,
            limits=Limits(context=context, max_batch=max_batch, prefill_chunk=prefill_chunk),
            out=output,
            dump=debug_dump,
            progress=progress,
            **choices,
        )
        measured = _card(folder, model, progress) if card else ()
    for line in (*summary.lines(read_manifest(folder)), *measured):
        click.echo(line, err=True)
    click.echo(folder)


def _card(folder: Path, model: str, progress: Progress) -> list[str]:
    """Measure the quality card of a folder compiled from `model`; return its lines."""
    from wherry.compiler.quality.texts import evaluation_of

    from . import quality

    return [*quality.lines(quality.measured(folder, model, None, evaluation_of(model), progress))]
