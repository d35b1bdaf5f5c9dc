"""Reads chat messages from a terminal or from redirected input."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wherry.base import settings

from .text import text_of

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings

PROMPT = "> "
FENCE = '"""'  # the line before and after a message of several lines


def messages(commands: Sequence[str]) -> Iterator[str]:
    """Yield messages, without empty ones, until the input ends.

    Args:
        commands: slash commands, which the Tab key completes at a terminal.
    """
    lines = _typed(commands) if sys.stdin.isatty() else _piped()
    for line in lines:
        message = _fenced(line, lines) if line.lstrip().startswith(FENCE) else line
        if message.strip():
            yield message.strip()


def _fenced(first: str, lines: Iterator[str]) -> str:
    """Read the lines up to the second fence, or to the end of the input."""
    said = [first.lstrip().removeprefix(FENCE)]
    while not said[-1].rstrip().endswith(FENCE):
        following = next(lines, None)
        if following is None:
            return "\n".join(said)
        said.append(following)
    said[-1] = said[-1].rstrip().removesuffix(FENCE)
    return "\n".join(said)


def _piped() -> Iterator[str]:
    """Yield lines of stdin. Ctrl-C between them has no effect: it stops answers."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        # text_of then reports a byte that is not UTF-8
        sys.stdin.reconfigure(errors="surrogateescape")
    while True:
        try:
            yield text_of(input(), "the line")
        except EOFError:
            return
        except KeyboardInterrupt:
            click.echo("", err=True)
        except click.UsageError as e:
            click.echo(f"Not sent: {e.message}", err=True)


def _typed(commands: Sequence[str]) -> Iterator[str]:
    """Yield typed lines, with line editing and history. Ctrl-C at the prompt clears the line."""
    session = _session(commands)
    while True:
        try:
            yield text_of(session.prompt(PROMPT), "the line")
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        except click.UsageError as e:
            click.echo(f"Not sent: {e.message}", err=True)


def _session(commands: Sequence[str]) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.output import create_output

    kept = _history_file()
    words = WordCompleter(list(commands), sentence=True)
    return PromptSession(
        history=FileHistory(str(kept)) if kept else InMemoryHistory(),
        completer=words,
        complete_while_typing=False,
        multiline=True,  # keeps pasted lines together as one message
        prompt_continuation=lambda width, number, is_soft: "" if is_soft else ". ",
        key_bindings=_keys(),
        enable_open_in_editor=True,
        # Answers go to stdout; if that is a file, the prompt goes to stderr.
        output=create_output(sys.stdout if sys.stdout.isatty() else sys.stderr),
    )


def _keys() -> KeyBindings:
    """Return the key bindings: Enter sends, Alt-Enter starts a new line.

    A terminal sends Ctrl-J for an Enter that is typed while an answer is written.
    """
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    @keys.add("c-j")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("escape", "c-j")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _history_file() -> Path | None:
    """Return the path of the history, readable only by its owner; None if it cannot be written."""
    path = settings.state_dir() / "chat-history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as e:
        click.echo(f"The history is not saved: {e}", err=True)
        return None
    return path
