"""What commands import: their start is quick, and needs no package that they do not use."""

from __future__ import annotations

import json

import pytest
from click import Context

from wherry.cli.group import COMMANDS, cli

from ..support.command import python

IMPORTED = """
import json, sys
from wherry.cli import main
sys.argv = ["wherry", *sys.argv[1:]]
try:
    main()
except SystemExit as e:
    assert not e.code, e.code
print()
print(json.dumps([len(sys.modules), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def imported(*arguments: str) -> tuple[int, set[str]]:
    """The number of modules after a command, and the packages that they are of."""
    count, packages = json.loads(python(IMPORTED, *arguments).splitlines()[-1])
    return count, set(packages)


def test_help_imports_no_command():
    count, packages = imported("--help")
    assert not packages & {"numpy", "pydantic", "rich", "tokenizers", "tvm", "tvm_ffi"}
    assert not packages & {"difflib", "logging", "tempfile"}  # slow to import, and of no use here
    assert count < 220


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries_are_the_first_sentences_of_the_commands_help(name):
    command = cli.get_command(Context(cli), name)
    assert command is not None
    assert COMMANDS[name][1] == command.get_short_help_str(limit=80)


@pytest.mark.cpu
def test_a_run_imports_no_package_of_other_work():
    """The first run compiles; the second finds the compiled model and answers.

    TVM is among its modules: the compiler says under which name a model lies in the cache.
    """
    arguments = ("run", "demo", "--seed", "1", "--max-tokens", "1", "Hello!")
    imported(*arguments)
    count, packages = imported(*arguments)
    server = {"fastapi", "starlette", "uvicorn", "prometheus_client", "ray"}
    assert not packages & (server | {"torch", "transformers", "safetensors", "gguf"})
    assert count < 2000
