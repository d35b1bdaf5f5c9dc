"""The slash commands of `wherry chat`, such as /help."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wherry.errors import UsageError

from . import conversation_file
from .images import image_part

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine

    from .chat import ChatSession

_HELP = (
    ("/reset", "forget the conversation"),
    ("/system X", "start again with the system message X"),
    ("/image F", "show the model the image F with the next message; repeatable"),
    ("/regen", "answer the last message once more"),
    ("/undo", "take the last message and its answer back"),
    ("/params", "show the fields of requests; /params temperature=0.2 sets, temperature= unsets"),
    ("/save F", "write the conversation to the file F"),
    ("/load F", "continue the conversation in F"),
    ("/stats", "tokens and memory of the cache so far"),
    ("/exit", "leave (also Ctrl-D); Ctrl-C stops an answer"),
    ("//X", "the message /X"),
    ('"""', "before and after a message of several lines (or Alt-Enter for a new line)"),
)


class Leave(Exception):
    """Raised by a command that ends the chat."""


def carry_out(session: ChatSession, line: str) -> None:
    """Run a slash command.

    Raises:
        Leave: the command ends the chat.
        UsageError: the command's argument is wrong.
    """
    name, _, rest = line.partition(" ")
    command = _BY_NAME.get(name)
    if command is None:
        click.echo(f"There is no {name}; //{line[1:]} sends it as a message.", err=True)
        _help(session, rest)
    else:
        command(session, rest.strip())


def _help(session: ChatSession, rest: str) -> None:
    formatter = click.HelpFormatter(width=shutil.get_terminal_size().columns)
    formatter.write_dl(_HELP)
    click.echo(formatter.getvalue(), err=True, nl=False)


def _exit(session: ChatSession, rest: str) -> None:
    raise Leave


def _reset(session: ChatSession, rest: str) -> None:
    session.images.clear()
    session.restart(rest or session.system)
    click.echo("The conversation is new.", err=True)


def _system(session: ChatSession, rest: str) -> None:
    session.restart(rest or None)
    click.echo("The conversation is new.", err=True)


def _image(session: ChatSession, rest: str) -> None:
    if not rest:
        raise UsageError("Which file? Type: /image cat.jpg")
    session.images.append(image_part(Path(rest)))
    click.echo(f"[images with the next message: {len(session.images)}]", err=True)


def _regen(session: ChatSession, rest: str) -> None:
    question = session.conversation.withdraw()
    if question is None:
        raise UsageError("There is no message yet to answer again.")
    if "seed" in session.fields:  # the same seed would give the same text again
        session.fields = session.fields | {"seed": session.fields["seed"] + 1}
    elif session.fields.get("temperature") == 0:
        click.echo("[the temperature is 0: the answer will be the same]", err=True)
    session.turn(question)


def _undo(session: ChatSession, rest: str) -> None:
    question = session.conversation.withdraw()
    if question is None:
        raise UsageError("There is no message to take back.")
    left = len(session.conversation.turns)
    click.echo(f"Taken back; the conversation has {left} messages.", err=True)


def _params(session: ChatSession, rest: str) -> None:
    changed = dict(session.fields)
    for word in rest.split():
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is not NAME=VALUE. Type: /params temperature=0.2")
        if value:
            changed[name] = _value(value)
        else:
            changed.pop(name, None)
    _check(changed)
    session.fields = changed
    for name, value in session.fields.items():
        click.echo(f"{name}={json.dumps(value)}", err=True)
    if not session.fields:
        click.echo("All fields are the model's own.", err=True)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# Request fields that the chat sets itself, so that a user cannot change them.
_RESERVED = {"messages", "model", "stream", "stream_options", "n"}


def _check(fields: dict[str, Any]) -> None:
    from wherry.runtime.host.request import of_arguments

    if taken := sorted(_RESERVED & set(fields)):
        raise UsageError(f"{', '.join(taken)}: the chat sets that itself")
    of_arguments("chat", {"messages": [{"role": "user", "content": "x"}], **fields})


def _save(session: ChatSession, rest: str) -> None:
    path = _file(rest or (str(session.save) if session.save else ""), "/save")
    session.write(path)
    click.echo(f"Saved: {path}", err=True)


def _load(session: ChatSession, rest: str) -> None:
    path = _file(rest, "/load")
    saved = conversation_file.read(path)
    _check(saved.fields)
    session.take(saved)
    click.echo(f"[{len(saved.turns)} messages of {path}]", err=True)


def _file(name: str, command: str) -> Path:
    if not name:
        raise UsageError(f"Which file? Type: {command} chat.json")
    return Path(name).expanduser()


def _stats(session: ChatSession, rest: str) -> None:
    click.echo(_counted(session.engine), err=True)


def _counted(engine: MLCEngine) -> str:
    """Describe the tokens so far, their rate, and the KV cache."""
    s = engine.stats()
    rate = (s.prefill_tokens + s.decode_tokens) / max(s.model_seconds, 1e-9)
    used = s.pages_total - s.pages_free
    return (
        f"{s.prefill_tokens} tokens read, {s.decode_tokens} written, {rate:,.0f} per second in the "
        f"model; {used} of {s.pages_total} pages of {s.page_size} tokens in use"
    )


_BY_NAME: dict[str, Callable[[ChatSession, str], None]] = {
    "/help": _help,
    "/reset": _reset,
    "/system": _system,
    "/image": _image,
    "/regen": _regen,
    "/undo": _undo,
    "/params": _params,
    "/save": _save,
    "/load": _load,
    "/stats": _stats,
    "/exit": _exit,
}
COMMANDS = tuple(_BY_NAME)
