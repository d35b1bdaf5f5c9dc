"""The `wherry` command. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import importlib
import logging
import os
import sys

import click

import wherry
from wherry.errors import WherryError

# Name -> module of this package that has a function of that name; imported when it is called.
COMMANDS = {
    "run": "run",
    "chat": "chat",
    "serve": "serve",
    "convert": "compile",
    "compile": "compile",
    "list": "listing",
    "doctor": "doctor",
}


class _Group(click.Group):
    """Imports a command when it is needed, so that `wherry --help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{COMMANDS[name]}")
        command: click.Command = getattr(module, f"{name}_command")
        return command


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wherry.__version__, prog_name="wherry")
@click.option("--debug", is_flag=True, help="Show tracebacks and the log.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Compile a language model once and run it anywhere.

    MODEL is demo (comes with Wherry), a folder with a Hugging Face model, a compiled folder, or
    hf://ORG/NAME[@REVISION].
    """
    ctx.obj = debug
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if debug else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)


def main() -> None:
    """Entry point; ends with the exit code of the error, 130 after Ctrl-C."""
    debug = "--debug" in sys.argv
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except WherryError as e:
        if debug:
            raise
        click.echo(f"Error: {e}", err=True)
        sys.exit(e.exit_code)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away: `wherry run ... | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(code if isinstance(code, int) else 0)
