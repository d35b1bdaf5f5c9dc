"""The command `wherry show`, which describes a model."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from wherry.artifact.card import Card
from wherry.errors import UsageError

from . import options
from .quality import summary
from .quantities import size

_NAME = 14  # width of names in columns


@click.command("show")
@options.model
@options.quant
@options.kv_dtype
@options.target
@click.option("--template", is_flag=True, help="Print only the chat template.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; sizes in bytes.")
def show_command(model: str, template: bool, as_json: bool, **typed: Any) -> None:
    """Describe MODEL: architecture, licence, chat template, memory.

    It also lists the model's entries in the cache. Only the small files of hf://ORG/NAME are
    downloaded.
    """
    from . import description

    loading, _ = options.split(typed)
    facts = description.describe(model, loading)
    text = facts.pop("template")
    if template:
        if text is None:
            raise UsageError(f"{model} has no chat template: it completes text alone.")
        click.echo(text)
    elif as_json:
        click.echo(json.dumps(facts | {"template": text}, indent=2))
    else:
        for line in lines(facts, text):
            click.echo(line)


def lines(facts: dict[str, Any], template: str | None) -> Iterator[str]:
    """Yield the lines of a model's description."""
    shape, memory, tools = facts["shape"], facts["memory"], facts["tools"]
    heads = f"{shape['heads']} heads, {shape['kv_heads']} of keys and values"
    yield facts["name"]
    yield from _row("architecture", f"{facts['architecture']}, {facts['parameters']:,} parameters")
    yield from _row("", f"{shape['layers']} layers of {shape['hidden_size']}, {heads}")
    yield from _row("vocabulary", f"{shape['vocab_size']:,} tokens")
    yield from _row("context", f"{facts['context']:,} tokens")
    yield from _row("licence", facts["licence"] or "not said")
    yield from _row("can", ", ".join(facts["capabilities"]))
    if template is not None:
        calls = f"calls of tools as {tools}" if tools else "no tools"
        thinks = "thinks if asked to" if facts["thinking"] else ""
        yield from _row("template", "; ".join(filter(None, [calls, thinks])))
    else:
        yield from _row("template", "none")
    bits = 8 * memory["weights"] / max(facts["parameters"], 1)
    about = f"{size(memory['weights'])} in {facts['quantization']}, {bits:.2f} bits per weight"
    yield from _row("weights", about)
    if facts["schemes"]:
        each = (
            f"{share:.1%} in {name}" for name, share in facts["schemes"].items() if share >= 0.001
        )
        yield from _row("", ", ".join(each))
    cache = f"{size(memory['kv_per_token'])} per token in {facts['kv_dtype']}"
    yield from _row(
        "memory", f"{cache}, {size(memory['workspace'])} per step, for {facts['target']}"
    )
    if facts["quality"]:
        yield from _row("quality", summary(Card(**facts["quality"])))
    for compiled in facts["compiled"]:
        about = f"{compiled['quantization']} for {compiled['target']}, {size(compiled['bytes'])}"
        card = compiled["quality"]
        yield from _row("compiled", about + (f"; {summary(Card(**card))}" if card else ""))


def _row(name: str, text: str) -> Iterator[str]:
    wrapped = textwrap.wrap(text, 100 - _NAME - 2, break_long_words=False) or [""]
    yield f"  {name:<{_NAME}}{wrapped[0]}".rstrip()
    for line in wrapped[1:]:
        yield " " * (_NAME + 2) + line
