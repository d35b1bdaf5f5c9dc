"""`wherry completion`: what a shell needs to complete commands, options, and names of models."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

_VARIABLE = "_WHERRY_COMPLETE"  # what the shell's script sets when it asks
_TO_TYPE = {
    "bash": "wherry completion bash > ~/.local/share/bash-completion/completions/wherry",
    "zsh": 'wherry completion zsh > "${fpath[1]}/_wherry"',
    "fish": "wherry completion fish > ~/.config/fish/completions/wherry.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_TO_TYPE)))
def completion_command(shell: str) -> None:
    r"""Print the script that completes commands, options and models in SHELL.

    \b
    bash  wherry completion bash > ~/.local/share/bash-completion/completions/wherry
    zsh   wherry completion zsh > "${fpath[1]}/_wherry"
    fish  wherry completion fish > ~/.config/fish/completions/wherry.fish
    """
    from .group import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "wherry", _VARIABLE).source(), nl=False)


def models(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What MODEL may be: demo, models that the cache has, and folders."""
    from wherry import cache

    names = {"demo": "comes with Wherry"}
    for entry in cache.entries():
        if entry.kind == "download":
            names[f"hf://{entry.name}"] = "downloaded"
    found = [CompletionItem(n, help=h) for n, h in names.items() if n.startswith(incomplete)]
    return [*found, CompletionItem(incomplete, type="dir")]


def cached(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that `wherry rm` takes."""
    from wherry import cache

    names = sorted({entry.name for entry in cache.entries() if entry.name})
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
