"""The pages: their lengths, links, commands and examples hold; generated ones are not stale."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
from benchmarks import charts, rows, table

from wherry.cli.group import cli
from wherry.errors import UsageError

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(ROOT / folder / "README.md" for folder in ("benchmarks", "mobile", "web")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
BY_NAME = {str(page.relative_to(ROOT)): page for page in PAGES}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("name", "most"), [("README.md", 130), ("ARCHITECTURE.md", 90)])
def test_one_screen(name, most):
    assert len(BY_NAME[name].read_text().splitlines()) <= most


@pytest.mark.parametrize("name", BY_NAME)
def test_no_placeholder_is_left(name):
    assert re.findall(r"@@\w+@@", BY_NAME[name].read_text()) == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    text = FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", BY_NAME)
def test_links(name):
    page = BY_NAME[name]
    text = FENCE.sub("", page.read_text())
    found = re.findall(r"(?<!`)\]\(([^)\s]+)\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    wrong = []
    for link in found:
        path, _, anchor = unquote(link).partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def commands(page: Path) -> list[list[str]]:
    """The words of each `wherry` command in a page's blocks of code."""
    blocks = [body for kind, body in FENCE.findall(page.read_text()) if kind in ("", "sh", "bash")]
    outside = FENCE.sub("", page.read_text())
    lines = [line[4:] for line in outside.splitlines() if line.startswith("    ")]
    joined = "\n".join([*blocks, *lines]).replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        for part in re.split(r"&&|;|\|", line.partition(" #")[0]):
            if part.strip().startswith("wherry "):
                found.append(shlex.split(part)[1:])
    return found


@pytest.mark.parametrize("name", [name for name in BY_NAME if commands(BY_NAME[name])])
def test_commands_are_understood(name):
    """Each command of a page parses; what it would do is for the tests of the commands."""
    for words in commands(BY_NAME[name]):
        understood(words)


def understood(words: list[str]) -> None:
    """Parse a command line as `wherry` does."""
    command: click.Command = cli
    context = click.Context(cli, info_name="wherry", **cli.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    if words and words[-1] in ("--help", "--version"):
        return
    try:
        command.make_context(command.name, list(words), parent=context)
    except click.BadParameter as error:  # a page's files are its reader's
        assert "does not exist" in error.message, (words, error.message)
    except UsageError as error:
        assert str(error).startswith("There is no f"), (words, error)  # file, or folder


@pytest.mark.parametrize("name", BY_NAME)
def test_python_is_python(name):
    for kind, body in FENCE.findall(BY_NAME[name].read_text()):
        if kind == "python":
            ast.parse(body)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["README.md", "docs/quickstart.md"])
def test_python_examples_run(name, tmp_path):
    examples = [b for kind, b in FENCE.findall(BY_NAME[name].read_text()) if kind == "python"]
    for example in (e for e in examples if "from wherry" in e):
        done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_performance_page_is_what_rows_say():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page == table.page(rows.read_rows(rows.ROWS)), "Type: make docs"


@pytest.mark.parametrize("theme", charts.THEMES)
def test_charts_are_what_rows_say(theme):
    drawn = charts.svg(rows.read_rows(rows.ROWS), charts.THEMES[theme])
    assert (charts.FOLDER / f"speed-{theme}.svg").read_text() == drawn, "Type: make charts"
