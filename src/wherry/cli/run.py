"""The command `wherry run`: all missing preparation, then an answer or a chat."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from wherry.errors import UsageError

from . import options
from .answers import write
from .chat import converse
from .images import content_of, image_part
from .text import TEXT, read_stdin


@click.command("run")
@options.model
@click.argument("prompt", required=False, type=TEXT)
@click.option("--completion", is_flag=True, help="Continue PROMPT as raw text; no chat template.")
@click.option(
    "--image",
    "images",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Show the model a JPEG, PNG, WebP or GIF, before PROMPT; repeatable.",
)
@options.system
@options.sampling
@options.load
def run_command(
    model: str,
    prompt: str | None,
    completion: bool,
    images: tuple[Path, ...],
    system: str | None,
    **typed: Any,
) -> None:
    """Answer PROMPT, or chat; download and compile MODEL first.

    With PROMPT (or text on stdin) the answer goes to stdout and nothing else does. Without it a
    chat begins. --completion continues PROMPT as raw text.
    """
    if prompt is None and not sys.stdin.isatty():
        prompt = read_stdin()
    if completion and prompt is None:
        raise click.UsageError("--completion continues a text. Type it as PROMPT.")
    if completion and images:
        raise click.UsageError("--completion continues a text, which has no images. Leave it out.")
    parts = [image_part(path) for path in images]  # before the long load
    loading, sampling = options.split(typed)
    with options.opened(model, loading) as engine:
        if not completion and not engine.loaded.chats:
            raise UsageError(
                f"{model} has no chat template: it continues texts. Type wherry run {model} "
                "--completion PROMPT"
            )
        if completion:
            assert prompt is not None  # checked above
            with engine.completions.create(prompt=prompt, stream=True, **sampling) as stream:
                write((c.text for chunk in stream for c in chunk.choices), markdown=False)
        elif prompt is not None:
            messages: list[Any] = [{"role": "system", "content": system}] if system else []
            messages.append({"role": "user", "content": content_of(prompt, parts)})
            with engine.chat.completions.create(
                messages=messages, stream=True, **sampling
            ) as stream:
                write(c.delta.content or "" for chunk in stream for c in chunk.choices)
        else:
            converse(engine, system, sampling, images=parts)
