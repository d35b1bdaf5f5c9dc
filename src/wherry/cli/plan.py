"""The command `wherry plan`: a model's memory before it is downloaded, compiled or loaded."""

from __future__ import annotations

import json
from typing import Any

import click

from . import options, planned
from .quantities import size


@click.command("plan")
@options.model
@options.quant
@options.kv_dtype
@options.activations
@options.target
@options.context
@options.speculation
@click.option("--max-batch", type=click.IntRange(1), help="Requests decoded together.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; sizes in bytes.")
def plan_command(model: str, as_json: bool, **typed: Any) -> None:
    """Say how much memory a run of MODEL takes, and whether it fits.

    The numbers are those of `wherry run MODEL` with the same options, with the largest step and a
    full KV cache. Nothing is compiled, and only the small files of hf://ORG/NAME are downloaded,
    but a GGUF file whole.
    The program is measured on this machine; a compilation takes more memory while it lasts. The
    exit code is 6 if the model does not fit.
    """
    loading, _ = options.split(typed)
    needs, problem = planned.needs(model, loading)
    if as_json:
        click.echo(json.dumps(needs.record() | {"fits": problem is None}, indent=2))
    else:
        for line in lines(needs):
            click.echo(line)
    if problem:
        raise problem


def lines(needs: planned.Needs) -> list[str]:
    """Return the parts of the memory, their sum, and the free memory, as lines of text."""
    batch = needs.max_batch
    cache = f"{needs.kv_tokens:,} tokens of {size(needs.kv_per_token)} in {needs.kv_dtype}"
    share = f"; {batch} requests at once share it" if batch > 1 else ""
    rows = [
        ("program", needs.program, "Python, libraries and tokenizer, measured here"),
        ("weights", needs.weights, _weights(needs)),
        ("a step", needs.step, f"{needs.prefill_chunk} tokens of prompts, {batch} answers"),
        ("cache", needs.cache, cache + share),
        *([("state", needs.state, f"of {batch} sequences, and snapshots")] if needs.state else []),
        *([("images", needs.images, "the tower, and features of images")] if needs.images else []),
        ("total", needs.total, ""),
        ("free", needs.free, f"on {needs.where}{_verdict(needs)}"),
    ]
    context = f"context of {needs.context:,} tokens"
    if needs.context < needs.model_context:
        context += f", of the model's {needs.model_context:,}"
    return [
        f"{needs.name} for {needs.target}: {context}",
        *(f"  {name:<8} {_size(count):>12}  {about}".rstrip() for name, count, about in rows),
        *([f"  --context auto takes {needs.largest:,} tokens"] if needs.largest else []),
    ]


def _weights(needs: planned.Needs) -> str:
    return f"{needs.quantization}, {needs.parameters:,} parameters of {needs.bits:.2f} bits"


def _verdict(needs: planned.Needs) -> str:
    if needs.free is None:
        return ": unknown whether it fits"
    return ": it fits" if needs.total <= needs.free else ": it does not fit"


def _size(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 1e6:,.1f} MB"
