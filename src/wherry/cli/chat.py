"""`wherry chat`, and the conversation at a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from . import interrupts, options
from .conversation import Conversation, Message
from .text import text_of

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
@options.system
@options.sampling
@options.load
def chat_command(model: str, system: str | None, **typed: Any) -> None:
    """Talk with MODEL at the terminal."""
    loading, sampling = options.split(typed)
    with options.opened(model, loading) as engine:
        converse(engine, system, sampling)


def write(pieces: Iterable[str]) -> str:
    """Write text to stdout as it comes, and a final newline if it has none; the whole of it."""
    whole = []
    for piece in pieces:
        whole.append(piece)
        sys.stdout.write(piece)
        sys.stdout.flush()
    text = "".join(whole)
    if not text.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()
    return text


def converse(engine: MLCEngine, system: str | None, fields: dict[str, Any]) -> None:
    """Read lines and answer them until the input ends."""

    def opened(system: str | None) -> Conversation:
        return Conversation(engine, system, fields.get("max_tokens"))

    interrupts.raise_instead()
    click.echo("Type a message; /help for commands, Ctrl-D to leave.", err=True)
    conversation = opened(system)
    for line in _lines():
        command, _, rest = line.partition(" ")
        if command == "/exit":
            return
        if command in ("/reset", "/system"):
            conversation = opened(rest or (system if command == "/reset" else None))
            click.echo("The conversation is new.", err=True)
        elif command == "/stats":
            click.echo(_counted(engine), err=True)
        elif command.startswith("/"):
            click.echo(_HELP, err=True, nl=False)
        else:
            _turn(engine, conversation, line, fields)


def _counted(engine: MLCEngine) -> str:
    """Tokens so far, how fast they came, and the cache."""
    s = engine.stats()
    rate = (s.prefill_tokens + s.decode_tokens) / max(s.model_seconds, 1e-9)
    used = s.pages_total - s.pages_free
    return (
        f"{s.prefill_tokens} tokens read, {s.decode_tokens} written, {rate:,.0f} a second in the "
        f"model; {used} of {s.pages_total} pages of {s.page_size} tokens in use"
    )


def _turn(engine: MLCEngine, conversation: Conversation, line: str, fields: dict[str, Any]) -> None:
    """One question and its answer; what cannot be asked is said, and the chat goes on."""
    from wherry.runtime import RequestError

    try:
        dropped = conversation.ask(line)
        if dropped:
            click.echo(
                f"[the context of {engine.loaded.context} tokens is full: "
                f"the oldest {dropped} messages are forgotten]",
                err=True,
            )
        conversation.answered(_answer(engine, conversation.messages, fields))
    except RequestError as e:
        conversation.withdraw()
        click.echo(f"Not sent: {e}", err=True)
    except KeyboardInterrupt:  # before the answer began
        conversation.withdraw()
        click.echo("[stopped]", err=True)


def _answer(engine: MLCEngine, messages: list[Message], fields: dict[str, Any]) -> str:
    """One answer; Ctrl-C ends it early, and what was said stays."""
    said: list[str] = []
    ends: list[str | None] = []

    def pieces() -> Iterator[str]:
        with engine.chat.completions.create(messages=messages, stream=True, **fields) as stream:
            for chunk in stream:
                for choice in chunk.choices:
                    said.append(choice.delta.content or "")
                    ends.append(choice.finish_reason)
                    yield said[-1]

    try:
        write(pieces())
        if ends[-1:] == ["length"] and "max_tokens" not in fields:
            click.echo("[the context is full; /reset begins anew]", err=True)
    except KeyboardInterrupt:
        click.echo(" [stopped]", err=True)
    return "".join(said)


def _lines() -> Iterator[str]:
    """Lines typed, without the empty ones; Ctrl-C at the prompt clears it."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # line editing and history for input()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # text_of says which byte is no text
    while True:
        try:
            line = text_of(input("> " if sys.stdin.isatty() else ""), "the line").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            click.echo("", err=True)
            continue
        except click.UsageError as e:
            click.echo(f"Not sent: {e.message}", err=True)
            continue
        if line:
            yield line
