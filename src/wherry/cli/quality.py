"""The command `wherry quality`, which measures what a compiled model has lost."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wherry.artifact.card import Card, write_card
from wherry.artifact.manifest import MANIFEST
from wherry.base.progress import shown
from wherry.errors import UsageError

from . import options

if TYPE_CHECKING:
    from wherry.base.progress import Progress
    from wherry.compiler.quality.texts import Text


@click.command("quality")
@options.model
@options.quant
@options.calibration
@options.kv_dtype
@options.activations
@options.target
@click.option(
    "--against",
    type=options.MODEL,
    metavar="MODEL",
    help="The model to compare with; default: MODEL itself. Required for a compiled MODEL.",
)
@click.option(
    "--against-quant",
    metavar="SCHEME",
    help="How the weights of the model to compare with are stored; default: q0f16.",
)
@click.option(
    "--text",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare on this text; default: one that comes with Wherry.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; KL in nats.")
def quality_command(
    model: str,
    calibration: str,
    against: str | None,
    against_quant: str | None,
    text: Path | None,
    as_json: bool,
    **typed: Any,
) -> None:
    """Measure how far MODEL is from its float model.

    It compares the distributions of the next token at each position of a text: mean and 99th
    percentile of the KL divergence, how often the most likely token is the same, and perplexity.
    Both models are converted and compiled as needed, and run on this machine. The card is stored in
    the compiled folder, where `wherry show` finds it.
    """
    from wherry.compiler.quality import texts

    chosen = texts.given(text) if text else texts.evaluation_of(against or model)
    with shown() as progress:
        if (Path(model).expanduser() / MANIFEST).is_file():
            folder = _compiled(model, against, calibration, typed)
        else:
            folder = _compile(model, calibration, progress, typed)
        card = measured(folder, against or model, against_quant, chosen, progress)
    if as_json:
        click.echo(json.dumps(asdict(card), indent=2))
        return
    for line in lines(card):
        click.echo(line)


def _compile(model: str, calibration: str, progress: Progress, typed: dict[str, Any]) -> Path:
    """Return the compiled folder of a model for the typed options."""
    from wherry.compiler.api import ensure_artifact

    given = {name: value for name, value in typed.items() if value is not None}
    return ensure_artifact(model, calibration=calibration, progress=progress, **given)


def _compiled(model: str, against: str | None, calibration: str, typed: dict[str, Any]) -> Path:
    """Return a compiled folder that the user gave, if the typed options fit it.

    Raises:
        UsageError: an option does not fit, or there is nothing to compare with.
    """
    from wherry.runtime.load import loading
    from wherry.runtime.load.options import for_compiler

    if calibration not in ("auto", "none"):
        raise UsageError(
            f"{model} is compiled, and its weights are encoded; --calibration {calibration} was "
            "requested. Leave it out, or give the model that it was compiled from."
        )
    if against is None:
        raise UsageError(
            f"{model} is compiled, and has no weights in floats to compare with. "
            f"Give the model that it was compiled from: wherry quality {model} --against MODEL"
        )
    loading_options, _ = options.split(typed)
    return loading.resolve(model, **for_compiler(loading_options))


def measured(folder: Path, against: str, quant: str | None, text: Text, progress: Progress) -> Card:
    """Measure the card of a compiled folder and store it there; a read-only folder gets none.

    Args:
        folder: the compiled folder.
        against: MODEL of the command line, the model to compare with.
        quant: name of the reference's scheme; None: q0f16.
        text: the text to compare on.
        progress: called with the phase, the steps done, and the steps in total.
    """
    from wherry.compiler.api import ensure_artifact
    from wherry.compiler.quality.measure import REFERENCE_QUANT, measure

    reference = Path(against).expanduser()
    if not (reference / MANIFEST).is_file():
        reference = ensure_artifact(
            against,
            target="cpu",
            quant=quant or REFERENCE_QUANT,
            kv_dtype="float32",
            progress=progress,
        )
    card = measure(folder, reference, text, progress=progress)
    try:
        write_card(folder, card)
    except OSError as e:
        click.echo(f"The card is not stored: {folder} cannot be written ({e.strerror}).", err=True)
    return card


def lines(card: Card) -> Iterator[str]:
    """Yield the lines of a card."""
    yield (
        f"{card.reference} in {card.quantization} for {card.target}, activations "
        f"{card.activations}, against {card.reference_quantization}, {card.tokens:,} tokens"
    )
    yield f"  KL mean          {card.kl_mean:.4g}"
    yield f"  KL 99th          {card.kl_p99:.4g}"
    yield f"  top-1 agreement  {card.top1_agreement:.1%}"
    yield f"  perplexity       {card.perplexity:.2f}, was {card.reference_perplexity:.2f}"
    yield from textwrap.wrap(verdict(card), 100)


# Largest mean of the KL divergence -> what it means (docs/quantization.md has measurements).
_CLOSE = 0.05
_VERDICTS = {
    0.01: "as good as the model it was compiled from",
    _CLOSE: "close to the model it was compiled from: few answers change, "
    "and seldom in what they say",
    0.2: "somewhat worse than the model it was compiled from: answers differ, and most are as good",
    math.inf: "far from the model it was compiled from: mistakes will be more frequent",
}
_LOST = 200.0  # perplexity from which on a model does not know what a text is about
_FULL = ("q8f16_1", "q8f32_1", "q0f16", "q0f32")  # schemes that lose next to nothing


def verdict(card: Card) -> str:
    """Return a sentence that says what the numbers of a card mean, and what to do about them."""
    changed = 1 - card.top1_agreement
    words = next(says for most, says in _VERDICTS.items() if card.kl_mean <= most)
    said = f"{card.reference} in {card.quantization} is {words}"
    said += f" ({changed:.1%} of next words differ)."
    if card.reference_perplexity > _LOST:
        said += (
            " But the text is foreign to this model, quantized or not, so that says little: give "
            "one that it could have written, --text FILE."
        )
    elif card.kl_mean > _CLOSE and card.quantization not in _FULL:
        said += " For less loss, type: --quant q8f16_1"
    return said


def summary(card: Card) -> str:
    """Return a card in one line, for `wherry show`."""
    return (
        f"KL {card.kl_mean:.2g} from {card.reference_quantization} (99th percentile "
        f"{card.kl_p99:.2g}), {card.top1_agreement:.1%} of best tokens equal, perplexity "
        f"{card.perplexity:.2f}, was {card.reference_perplexity:.2f}"
    )
