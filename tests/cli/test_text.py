"""What people type that is no text, is too long, or ends; what they get."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from wherry.cli.group import EXIT_CODES, cli
from wherry.quant.scheme import schemes

from ..support.command import environment, wherry

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"


def raw(*arguments, stdin=b"", **env):
    """As `wherry`, in bytes."""
    command = [sys.executable, "-m", "wherry", *arguments]
    return subprocess.run(
        command, input=stdin, capture_output=True, env=environment(**env), check=False
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("run", "demo", b"a\xff"), b"", b"PROMPT is not UTF-8: b'\\xff' at 1"),
        (("run", "demo", "--system", b"\xff", "x"), b"", b"system is not UTF-8"),
        (("run", "demo"), b"ab\xe4\xb8", b"stdin is not UTF-8: b'\\xe4' at 2"),
        (("run", b"\xff"), b"x", b"There is no folder"),
    ],
)
def test_what_is_no_text_is_a_usage_error(arguments, stdin, said):
    done = raw(*arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.cpu
class TestWithTheDemo:
    def test_a_line_that_is_no_text_does_not_end_a_chat(self):
        lines = b"hello\n\xff\nWhat is 2 plus 3?\n"
        done = raw("chat", "demo", "--temperature", "0", stdin=lines)
        assert done.returncode == 0, done.stderr
        assert b"Not sent: the line is not UTF-8" in done.stderr
        assert len(done.stdout.splitlines()) >= 2 and b"5" in done.stdout

    def test_a_chat_outlives_its_context(self):
        lines = ["What is 2 plus 3?"] * 6 + ["a fox " * 60, "What is 2 plus 2?"]
        done = wherry("chat", "demo", "--context=64", "--temperature=0", stdin="\n".join(lines))
        assert done.returncode == 0, done.stderr
        assert "[the context of 64 tokens is full: the oldest 2 messages are forgotten]" in (
            done.stderr
        )
        assert done.stderr.count("Not sent: This model's maximum context length is 64 tokens") == 1
        assert len(re.findall("[54]", done.stdout)) >= 7, done.stdout

    def test_a_piped_answer_ends_with_one_newline(self):
        for arguments in (("What is 2 plus 3?",), ("--completion", "Once upon a time")):
            done = wherry("run", "demo", "--temperature=0", "--max-tokens=4", *arguments)
            assert done.stdout.endswith("\n") and not done.stdout.endswith("\n\n")

    def test_a_terminal_that_lacks_characters(self):
        done = raw("run", "demo", "--max-tokens", "4", "caf\u00e9", PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["run", "chat", "serve", "convert", "compile"])
def test_help_names_every_scheme(command):
    text = CliRunner().invoke(cli, [command, "--help"]).stdout
    assert all(re.search(rf"\b{name}\b", text) for name in schemes())


def test_exit_codes_are_those_of_the_page():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
    text = CliRunner().invoke(cli, ["--help"]).stdout
    assert all(f"{code}  {meaning}" in text for code, meaning in EXIT_CODES.items())
