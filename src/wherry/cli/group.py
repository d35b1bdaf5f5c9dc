"""The command group of `wherry`: commands by name, and exit codes."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

import wherry
from wherry.base import settings
from wherry.errors import (
    ArtifactError,
    ModelError,
    ResourceError,
    ToolchainError,
    UsageError,
    WherryError,
)

from . import interrupts

BROKEN_PIPE = 141  # exit code as in shells: 128 + SIGPIPE
# Exit codes; docs/environment.md has the same table, and a test compares them.
EXIT_CODES = {
    0: "done",
    1: "an internal error; or `doctor` or `bench` found something that does not work",
    UsageError.exit_code: "the command line or a request is wrong",
    ModelError.exit_code: "the model cannot be read or downloaded",
    ArtifactError.exit_code: "a compiled folder is damaged or for another machine",
    ToolchainError.exit_code: "a tool or library that a target needs is not installed",
    ResourceError.exit_code: "memory, disk or context is too small",
    interrupts.INTERRUPTED: "Ctrl-C",
    BROKEN_PIPE: "the reader of the output went away",
}
# Command -> module of this package that defines it, imported when the command is called, and the
# first sentence of its help, so that `wherry --help` imports none; a test compares them.
COMMANDS = {
    "run": ("run", "Answer PROMPT, or chat; download and compile MODEL first."),
    "chat": ("chat", "Talk with MODEL at the terminal."),
    "serve": ("serve", "Serve MODEL over HTTP, with the APIs of OpenAI and others."),
    "bench": ("bench", "Measure throughput and latency of MODEL, or of a server."),
    "plan": ("plan", "Say how much memory a run of MODEL takes, and whether it fits."),
    "pull": ("pull", "Download, convert and compile MODEL ahead of a run."),
    "show": ("show", "Describe MODEL: architecture, licence, chat template, memory."),
    "quality": ("quality", "Measure how far MODEL is from its float model."),
    "ps": ("ps", "List this machine's servers, and the models they have loaded."),
    "convert": ("compile", "Write the weights of MODEL in the layout of a scheme."),
    "compile": ("compile", "Compile MODEL to a folder that any runtime of Wherry loads."),
    "package": ("package", "Write a chat site for browsers, or libraries for an app."),
    "web": ("web", "Serve FOLDER to browsers, which run its models."),
    "list": ("listing", "List the content of the cache, with size and last use."),
    "rm": ("removal", "Remove model NAME from the cache."),
    "cache": ("removal", "Maintain the cache."),
    "doctor": ("doctor", "Check this machine, and list devices and the tools of targets."),
    "completion": ("completion", "Print the completion script of SHELL."),
}


# Command names of other programs -> Wherry's command, or an explanation.
_ELSEWHERE = {
    "api": "serve",
    "benchmark": "bench",
    "build": "compile",
    "complete": "run",
    "convert_weight": "convert",
    "delete": "rm",
    "download": "pull",
    "env": "doctor",
    "gen_config": "compile",
    "generate": "run",
    "info": "show",
    "ls": "list",
    "models": "list",
    "quantize": "convert",
    "remove": "rm",
    "server": "serve",
    "stop": "ps",  # the output of `wherry ps` explains how to stop a server
}


def _fix(typed: str, rest: Sequence[str]) -> str:
    """Say what to type instead of a word that is no command, and the words after it."""
    import shlex
    from difflib import get_close_matches

    from wherry.hub import names

    def line(*words: str) -> str:
        return "Type: " + shlex.join(["wherry", *words])

    if elsewhere := _ELSEWHERE.get(typed.lower()):
        return line(elsewhere, "--help")
    if close := get_close_matches(typed.lower(), COMMANDS, n=1):
        return line(close[0], *(rest or ["--help"]))
    if names.possible(typed):
        return line("run", typed, *rest)
    return f"There are {', '.join(COMMANDS)}. {line('--help')}"


class _Group(click.Group):
    """Command group that imports a command when it is needed, so that `wherry --help` is quick."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:  # click would exit with code 1 and no message
            raise click.exceptions.Exit(BROKEN_PIPE) from e

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        typed = args[0]
        if typed in COMMANDS or typed.startswith("-"):
            return super().resolve_command(ctx, args)
        raise UsageError(f"There is no command {typed!r}. {_fix(typed, args[1:])}")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__package__}.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, f"{name}_command")
        return command


_EXAMPLES = """\b
Examples:
  wherry run demo "Tell me a story."      the model that comes with Wherry
  wherry run ./Qwen3-0.6B                 a folder from Hugging Face
  wherry run hf://Qwen/Qwen3-0.6B         the same, downloaded
  wherry serve ./Qwen3-0.6B               OpenAI's API at http://127.0.0.1:8000/v1
  wherry package ./Qwen3-0.6B --target android -o MyApp    what an app needs
  wherry package ./Qwen3-0.6B -o site && wherry web site   a page
  wherry compile --help                   targets, and schemes of weights
"""


def _epilog() -> str:
    rows = [f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join((_EXAMPLES, "\b", "Exit codes:", *rows))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_epilog())
@click.version_option(wherry.__version__, prog_name="wherry")
@click.option("--debug", is_flag=True, help="Show tracebacks and the log.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Compile a language model once and run it anywhere.

    MODEL is demo (comes with Wherry), a folder with a Hugging Face model, a compiled folder, a GGUF
    file, hf://ORG/NAME[@REVISION], or of a repository of GGUF hf://ORG/NAME:Q4_K_M.
    """
    ctx.obj = debug
    from . import log

    log.show(debug)


def run() -> None:
    """Run the command line and end the process with its exit code; see EXIT_CODES."""
    debug = "--debug" in sys.argv
    # prints a replacement for characters that the terminal lacks
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Windows' old code page lacks most characters, and its terminals do not use it.
            utf8 = sys.platform == "win32" and not stream.isatty()
            stream.reconfigure(encoding="utf-8" if utf8 else None, errors="backslashreplace")
    if settings.completing():
        from . import completion as completion  # registers click's completion class for bash
    try:
        code = cli.main(prog_name="wherry", standalone_mode=False)
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
        click.echo("Interrupted.", err=True)
        sys.exit(interrupts.INTERRUPTED)
    except BrokenPipeError:  # the reader of stdout has exited: `wherry run ... | head -1`
        _drop_output()
        sys.exit(BROKEN_PIPE)
    except OSError as e:
        from .refused import explained

        if debug or (error := explained(e, of_output=_is_of_output(e))) is None:
            raise
        if _is_of_output(e):
            _drop_output()
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _is_of_output(error: OSError) -> bool:
    """Return whether an error comes from writing the output, which has no file name."""
    from traceback import walk_tb

    *_, (frame, _line) = walk_tb(error.__traceback__)
    writers = ("click.utils", f"{__package__}.answers", __name__)
    return error.filename is None and frame.f_globals["__name__"] in writers


def _drop_output() -> None:
    """Send what stdout still has to nowhere; else Python complains of it at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
