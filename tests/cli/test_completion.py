"""Shells complete commands, options and models; bash too, whose words end at colons."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from wherry.base import settings

from ..support.command import SRC, environment, wherry

BASH = """
wherry() { python -m wherry "$@"; }
source <(wherry completion bash)
complete_line() {
    COMP_LINE="$1" COMP_POINT=${#1} COMPREPLY=()
    COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
    _wherry_completion ./wherry
    printf '%s\\n' "${COMPREPLY[@]}"
}
compopt() { echo "compopt $*"; }
"""


@pytest.fixture
def program(tmp_path):
    """A file `wherry` in a folder of its own, as pip makes it."""
    import sys

    path = tmp_path / "bin" / "wherry"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wherry "$@"\n')
    path.chmod(0o755)
    return path


def completed(program, line):
    """What bash would offer after `line`."""
    script = BASH.replace("./wherry", str(program)) + f'complete_line "{line}"'
    path = f"{program.parent}:{environment()['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script.replace('python -m wherry "$@"', f'"{program}" "$@"')],
        capture_output=True,
        text=True,
        env=environment(PATH=path, PYTHONPATH=str(SRC)),
        check=False,
    )
    assert done.returncode == 0 and "rror" not in done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes_commands_and_options(program):
    assert completed(program, "wherry com") == ["compile", "completion"]
    assert completed(program, "wherry run --temp") == ["--temperature"]
    assert completed(program, "wherry completion ") == ["bash", "zsh", "fish"]


def test_bash_completes_models_with_colons(program):
    cache = settings.cache_dir()
    folder = cache / "hub" / "people--boat" / ("0" * 40)
    folder.mkdir(parents=True)
    try:
        assert completed(program, "wherry run ") == [
            "compopt",
            "-o",
            "dirnames",
            "demo",
            "hf://people/boat",
        ]
        # bash takes what is before the last colon for another word
        assert "//people/boat" in completed(program, "wherry run hf://peo")
        assert "people/boat" in completed(program, "wherry rm peo")
    finally:
        shutil.rmtree(folder.parent)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_ask_us(shell):
    done = wherry("completion", shell)
    assert done.returncode == 0 and f"_WHERRY_COMPLETE={shell}_complete" in done.stdout
    assert "wherry" in done.stdout


def test_a_shell_that_is_not_known():
    done = wherry("completion", "csh")
    assert done.returncode == 2 and "'csh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
