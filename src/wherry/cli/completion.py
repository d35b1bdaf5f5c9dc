"""The command `wherry completion`: shells complete commands, options and model names."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class
from click.shell_completion import get_completion_class as class_of

from wherry.base import settings

_SHELLS = ("bash", "zsh", "fish")


@add_completion_class
class _Bash(BashComplete):
    """Completion for bash, which splits words at colons: it cuts hf://ORG/NAME in three.

    The shell's script sends the whole line, and drops from the results the part before bash's last
    word.
    """

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" response word kind value before=""
    response=$(env WHERRY_LINE="$line" %(complete_var)s=bash_complete "$1")
    word="${line##*[[:space:]]}"
    if [[ "$word" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then before="${word%%"${word##*:}"}"; fi
    COMPREPLY=()
    for value in $response; do
        kind="${value%%%%,*}"
        value="${value#*,}"
        case "$kind" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            *) COMPREPLY+=("${value#"$before"}") ;;
        esac
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Split the line into complete words and the incomplete last one."""
        line = settings.typed_line()
        words = line.split()[1:]
        unfinished = words.pop() if words and not line[-1:].isspace() else ""
        return words, unfinished


_WHERE = """\b
What to type, once:
  bash  wherry completion bash > ~/.local/share/bash-completion/completions/wherry
  zsh   wherry completion zsh > "${fpath[1]}/_wherry"
  fish  wherry completion fish > ~/.config/fish/completions/wherry.fish
"""


@click.command("completion", epilog=_WHERE)
@click.argument("shell", type=click.Choice(_SHELLS))
def completion_command(shell: str) -> None:
    """Print the completion script of SHELL."""
    from .group import cli

    completion_class = class_of(shell)
    assert completion_class is not None
    click.echo(completion_class(cli, {}, "wherry", settings.COMPLETE).source(), nl=False)


def models(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the argument MODEL: demo, cached models and folders."""
    from wherry.cache.entries import entries

    names = {"demo": "comes with Wherry"}
    for entry in entries():
        if entry.kind == "download":
            names[f"hf://{entry.name}"] = "downloaded"
    items = [CompletionItem(n, help=h) for n, h in names.items() if n.startswith(typed)]
    return [*items, CompletionItem(typed, type="dir")]


def cached(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete a name for `wherry rm`."""
    from wherry.cache.entries import entries

    names = sorted({entry.name for entry in entries() if entry.name})
    return [CompletionItem(name) for name in names if name.startswith(typed)]
