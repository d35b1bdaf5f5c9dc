"""`wherry run`: every step that is missing, then an answer or a chat."""

from __future__ import annotations

import sys
from typing import Any

import click

from . import options
from .chat import converse, write
from .progress import shown


@click.command("run")
@options.model
@click.argument("prompt", required=False)
@options.quant
@options.kv_dtype
@options.activations
@options.target
@click.option("--completion", is_flag=True, help="Continue PROMPT as raw text; no chat template.")
@click.option("--system", help="A system message before the conversation.")
@options.sampling
@options.engine
def run_command(
    model: str,
    prompt: str | None,
    quant: str | None,
    kv_dtype: str,
    activations: str,
    target: str,
    completion: bool,
    system: str | None,
    context: int | None,
    threads: int | None,
    **sampling: Any,
) -> None:
    """Download, convert, compile, load and answer: whatever of it is missing.

    With PROMPT (or text on stdin) the answer goes to stdout and nothing else does. Without, a chat
    begins. --completion writes the continuation of PROMPT alone.
    """
    from wherry.runtime import MLCEngine

    if prompt is None and not sys.stdin.isatty():
        prompt = sys.stdin.read()
    if completion and prompt is None:
        raise click.UsageError("--completion continues a text. Type it as PROMPT.")
    with shown() as progress:
        engine = MLCEngine(
            model,
            target=target,
            quant=quant,
            kv_dtype=kv_dtype,
            activations=activations,
            progress=progress,
            **options.given(context=context, threads=threads),
        )
    fields = options.given(**sampling)
    with engine:
        if completion:
            with engine.completions.create(prompt=prompt, stream=True, **fields) as stream:
                write(c.text for chunk in stream for c in chunk.choices)
        elif prompt is not None:
            messages = [{"role": "system", "content": system}] if system else []
            messages.append({"role": "user", "content": prompt})
            with engine.chat.completions.create(messages=messages, stream=True, **fields) as stream:
                write(c.delta.content or "" for chunk in stream for c in chunk.choices)
        else:
            converse(engine, system, fields)
