"""Writes docs/cli.md from all help texts: `make docs` runs it, and a test compares the page.

    python -m wherry.cli.reference > docs/cli.md

Texts are wrapped as in a wide terminal.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from .group import cli

_WIDTH = 100  # columns to which help texts are wrapped
_HEAD = """\
# Commands

What `wherry COMMAND --help` says. This page is written by `make docs`.
"""


def page() -> str:
    """Return docs/cli.md as Markdown."""
    return "\n".join([_HEAD, *_sections(cli, None, "wherry")])


def _sections(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    context = click.Context(
        command, parent, name, terminal_width=_WIDTH, **command.context_settings
    )
    context.color = False
    path = context.command_path
    yield f"## {path}\n\n```text\n{click.unstyle(command.get_help(context))}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            child_command = command.get_command(context, child)
            if child_command is not None and not child_command.hidden:
                yield from _sections(child_command, context, child)


if __name__ == "__main__":
    click.echo(page(), nl=False)
