"""`wherry chat`, and the conversation at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from . import options
from .progress import shown

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine

_HELP = """\
/reset    forget the conversation
/system X start again with the system message X
/stats    tokens and memory of the cache so far
/exit     leave (also Ctrl-D); Ctrl-C stops an answer
"""


@click.command("chat")
@options.model
@options.quant
@options.kv_dtype
@options.activations
@options.target
@click.option("--system", help="A system message before the conversation.")
@options.sampling
@options.engine
def chat_command(
    model: str,
    quant: str | None,
    kv_dtype: str,
    activations: str,
    target: str,
    system: str | None,
    context: int | None,
    threads: int | None,
    **sampling: Any,
) -> None:
    """Talk with MODEL at the terminal."""
    from wherry.runtime import MLCEngine

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
    with engine:
        converse(engine, system, options.given(**sampling))


def write(pieces: Iterable[str]) -> str:
    """Write text to stdout as it comes, with a final newline on a terminal; the whole of it."""
    whole = []
    for piece in pieces:
        whole.append(piece)
        sys.stdout.write(piece)
        sys.stdout.flush()
    if sys.stdout.isatty() and not (whole and whole[-1].endswith("\n")):
        sys.stdout.write("\n")
    return "".join(whole)


def converse(engine: MLCEngine, system: str | None, fields: dict[str, Any]) -> None:
    """Read lines and answer them until the input ends."""
    click.echo("Type a message; /help for commands, Ctrl-D to leave.", err=True)
    history = _opening(system)
    for line in _lines():
        command, _, rest = line.partition(" ")
        if command == "/exit":
            return
        if command in ("/reset", "/system"):
            history = _opening(rest or (system if command == "/reset" else None))
            click.echo("The conversation is new.", err=True)
        elif command == "/stats":
            click.echo(_counted(engine), err=True)
        elif command.startswith("/"):
            click.echo(_HELP, err=True, nl=False)
        else:
            history.append({"role": "user", "content": line})
            history.append({"role": "assistant", "content": _answer(engine, history, fields)})


def _counted(engine: MLCEngine) -> str:
    """Tokens so far, how fast they came, and the cache."""
    s = engine.stats()
    rate = (s.prefill_tokens + s.decode_tokens) / max(s.model_seconds, 1e-9)
    used = s.pages_total - s.pages_free
    return (
        f"{s.prefill_tokens} tokens read, {s.decode_tokens} written, {rate:,.0f} a second in the "
        f"model; {used} of {s.pages_total} pages of {s.page_size} tokens in use"
    )


def _opening(system: str | None) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}] if system else []


def _answer(engine: MLCEngine, history: list[dict[str, str]], fields: dict[str, Any]) -> str:
    """One answer; Ctrl-C ends it early, and what was said stays."""
    said: list[str] = []

    def pieces() -> Iterator[str]:
        with engine.chat.completions.create(messages=history, stream=True, **fields) as stream:
            for chunk in stream:
                for choice in chunk.choices:
                    said.append(choice.delta.content or "")
                    yield said[-1]

    try:
        write(pieces())
    except KeyboardInterrupt:
        click.echo(" [stopped]", err=True)
    return "".join(said)


def _lines() -> Iterator[str]:
    """Lines typed, without the empty ones; Ctrl-C at the prompt clears it."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # line editing and history for input()
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            click.echo("", err=True)
            continue
        if line:
            yield line
