"""The command `wherry chat`, and the conversation at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wherry.errors import UsageError

from . import conversation_file, interrupts, options
from .answers import write
from .chat_commands import COMMANDS, Leave, carry_out
from .chat_lines import messages
from .conversation import Conversation
from .conversation_file import Saved
from .images import Content, content_of

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine


@click.command("chat")
@options.model
@options.system
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Save the conversation in FILE, and continue the one that FILE has.",
)
@options.sampling
@options.load
def chat_command(model: str, system: str | None, save: Path | None, **typed: Any) -> None:
    """Talk with MODEL at the terminal.

    Enter sends, Alt-Enter starts a new line; a message of several lines may also stand
    between two lines of \"\"\". /help lists the commands.
    """
    loading, sampling = options.split(typed)
    saved = conversation_file.read(save) if save and save.exists() else None
    if saved and system is not None:
        raise UsageError(f"{save} has its own system message. Leave out --system, or type /system")
    with options.opened(model, loading) as engine:
        converse(engine, system, sampling, save=save, saved=saved)


def converse(
    engine: MLCEngine,
    system: str | None,
    fields: dict[str, Any],
    *,
    save: Path | None = None,
    saved: Saved | None = None,
    images: Sequence[dict[str, Any]] = (),
) -> None:
    """Read messages and answer them until the input ends.

    Args:
        engine: the engine that answers.
        system: system message of the conversation.
        fields: fields of each request: temperature, ...
        save: file of the conversation, written after each answer.
        saved: content of an earlier file, to continue.
        images: parts of the first message.
    """
    interrupts.raise_instead()
    session = ChatSession(engine, system, fields, save)
    session.images.extend(images)
    click.echo("Type a message; /help for commands, Ctrl-D to leave.", err=True)
    if saved:
        session.take(saved)
        click.echo(f"[{len(saved.turns)} messages of {save}]", err=True)
    for message in messages(COMMANDS):
        if not message.startswith("/"):
            session.ask(message)
        elif message.startswith("//"):  # a doubled slash escapes a message that begins with a slash
            session.ask(message[1:])
        else:
            try:
                carry_out(session, message)
            except Leave:
                return
            except UsageError as e:
                click.echo(str(e), err=True)


class ChatSession:
    """A conversation and its settings, which /commands change."""

    def __init__(
        self, engine: MLCEngine, system: str | None, fields: dict[str, Any], save: Path | None
    ) -> None:
        self.engine = engine
        self.system = system  # the system message that /reset restores
        self.fields = fields
        self.save = save
        self.conversation = Conversation(system)
        self.images: list[dict[str, Any]] = []  # parts of the next message

    def restart(self, system: str | None) -> None:
        """Start a new conversation with another system message."""
        self.conversation = Conversation(system)

    def take(self, saved: Saved) -> None:
        """Continue a saved conversation; options of the command line override its fields."""
        self.conversation = Conversation(saved.system, saved.turns)
        self.fields = {**saved.fields, **self.fields}

    def write(self, path: Path) -> None:
        """Save the conversation to a file.

        Raises:
            UsageError: the file cannot be written.
        """
        said = self.conversation
        name = self.engine.loaded.name
        conversation_file.write(path, Saved(name, said.system, said.turns, self.fields))

    def ask(self, text: str) -> None:
        """Answer a typed message, with the images that wait for it."""
        content, self.images = content_of(text, self.images), []
        self.turn(content)

    def turn(self, message: Content) -> None:
        """Answer one message; a message that cannot be sent is reported, and the chat continues."""
        from wherry.runtime import RequestError

        self.conversation.ask(message)
        try:
            self.conversation.answered(self._answer())
        except RequestError as e:
            self.conversation.withdraw()
            click.echo(f"Not sent: {e}", err=True)
        except KeyboardInterrupt:  # Ctrl-C before the first token of the answer
            self.conversation.withdraw()
            click.echo("[stopped]", err=True)
        if self.save:
            self._keep(self.save)

    def _keep(self, path: Path) -> None:
        try:
            self.write(path)
        except UsageError as e:
            click.echo(f"[not saved: {e}]", err=True)

    def _answer(self) -> str:
        """Write one answer; Ctrl-C ends it early and keeps its text."""
        said: list[str] = []
        ends: list[str | None] = []
        fields: dict[str, Any] = {"truncation": "auto", **self.fields}
        messages = self.conversation.messages
        create = self.engine.chat.completions.create

        def pieces() -> Iterator[str]:
            with create(messages=messages, stream=True, **fields) as stream:
                for chunk in stream:
                    self._tell_dropped(chunk.dropped_messages)
                    for choice in chunk.choices:
                        said.append(choice.delta.content or "")
                        ends.append(choice.finish_reason)
                        yield said[-1]

        try:
            write(pieces())
            if ends[-1:] == ["length"] and "max_tokens" not in fields:
                click.echo("[the context is full; /reset starts again]", err=True)
        except KeyboardInterrupt:
            click.echo(" [stopped]", err=True)
        return "".join(said)

    def _tell_dropped(self, dropped: int | None) -> None:
        """Tell once which messages the context has no room for."""
        if dropped is None or dropped == self.conversation.dropped:
            return
        self.conversation.dropped = dropped
        click.echo(
            f"[the context of {self.engine.loaded.context} tokens is full: "
            f"the oldest {dropped} messages are forgotten]",
            err=True,
        )
