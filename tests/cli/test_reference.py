"""docs/cli.md says what the program says of itself; `make docs` writes it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from wherry.cli.group import COMMANDS, cli
from wherry.cli.reference import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_help_says():
    assert (ROOT / "docs" / "cli.md").read_text() == page(), "Type: make docs"


def test_the_page_has_every_command_and_no_line_too_wide():
    for name in COMMANDS:
        assert f"\n## wherry {name}\n" in page()
    assert "wherry cache prune" in page() and "\x1b" not in page()
    assert max(map(len, page().splitlines())) <= 100


def test_the_readme_names_every_command():
    table = (ROOT / "README.md").read_text()
    missing = [name for name in COMMANDS if f"| `wherry {name}" not in table]
    assert not missing


def test_on_a_usual_terminal_the_list_of_commands_is_complete(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = CliRunner().invoke(cli, ["--help"]).output
    commands = text.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in commands] == list(COMMANDS)
    assert [line for line in commands if line.endswith("...")] == []
    assert "\\b" not in page()
