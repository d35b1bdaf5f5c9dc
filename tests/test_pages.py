"""The pages: their lengths, links, commands and examples hold; generated ones are not stale."""

from __future__ import annotations

import ast
import functools
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
ROOMS = ("app", "engine", "mobile", "src", "web", "cmake", "docs", "examples")
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(ROOT / folder / "README.md" for folder in ("benchmarks", "mobile", "web")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
BY_NAME = {str(page.relative_to(ROOT)): page for page in PAGES}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# Pages for those who read the source; paths on others are the reader's own.
OF_SOURCE = [n for n in BY_NAME if n.startswith("docs/design/")]
OF_SOURCE += ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/server.md", "docs/quantization.md"]
SOURCES = (".py", ".cc", ".h", ".cuh", ".c", ".ts", ".js", ".mjs", ".kt", ".swift")
GENERATED = {"models.cc"}  # what a package's build writes
OTHERS = {"--dashboard-host"}  # options of other programs that stand alone on pages


@pytest.mark.parametrize(("name", "most"), [("README.md", 130), ("ARCHITECTURE.md", 90)])
def test_one_screen(name, most):
    assert len(BY_NAME[name].read_text().splitlines()) <= most


def test_the_changelog_is_short():
    assert 40 <= len((ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].splitlines()) <= 80


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
    links = re.findall(r"(?<!`)\]\(([^)\s]+)\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    wrong = []
    for link in links:
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
    result = []
    for line in joined.splitlines():
        for part in re.split(r"&&|;|\|", line.partition(" #")[0]):
            if part.strip().startswith("wherry "):
                result.append(shlex.split(part)[1:])
    return result


@pytest.mark.parametrize("name", [name for name in BY_NAME if commands(BY_NAME[name])])
def test_commands_are_understood(name):
    """Each command of a page parses; what it would do is for the tests of the commands."""
    for words in commands(BY_NAME[name]):
        understood(words)
        if "-o" in words:  # typed in a checkout, it must not write among the sources
            folder = words[words.index("-o") + 1].partition("/")[0]
            assert not (ROOT / folder / "__init__.py").exists() and folder not in ROOMS, words


def understood(words: list[str]) -> None:
    """Parse a command line as `wherry` does."""
    command: click.Command = cli
    context = click.Context(cli, info_name="wherry", **cli.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        subcommand = command.get_command(context, words[0])
        assert subcommand is not None, words
        command, words = subcommand, words[1:]
    if words and words[-1] in ("--help", "--version"):
        return
    try:
        command.make_context(command.name, list(words), parent=context)
    except click.BadParameter as error:  # a page's files are its reader's
        assert "does not exist" in error.message, (words, error.message)
    except UsageError as error:
        assert str(error).startswith("There is no f"), (words, error)  # file, or folder


def spans(page: Path) -> list[str]:
    """The pieces of code in a page's sentences. Other tools' columns are not ours to check."""
    text = FENCE.sub("", page.read_text())
    if page.name == "coming-from.md":
        text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE)
    return CODE.findall(text)


@functools.cache
def options(words: tuple[str, ...]) -> set[str]:
    """The options of a command, of a group's commands, too, and those of wherry-lite for ()."""
    command: click.Command = cli
    context = click.Context(cli)
    for word in words:
        assert isinstance(command, click.Group)
        named = command.get_command(context, word)
        assert named is not None, words
        command = named
    names = {"--help"}.union(*(p.opts + p.secondary_opts for p in command.params))
    if isinstance(command, click.Group):
        names |= set().union(*(options((*words, n)) for n in command.list_commands(context)))
    if not words:
        for file in (ROOT / "app" / "lite").glob("*.cc"):
            names |= set(OPTION.findall(file.read_text()))
    return names


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"benchmarks/README.md"}))
def test_options_exist(name):
    """Those that sentences name, alone or after a command, which then has them."""
    wrong = []
    for span in spans(BY_NAME[name]):
        if span.startswith("--"):
            known = options(()) | OTHERS
        elif command := re.match(r"wherry ((?:cache )?[a-z]+)\b", span):
            known = options(tuple(command[1].split()))
        else:
            continue
        wrong += [span for option in OPTION.findall(span) if option not in known]
    assert not wrong


@functools.cache
def paths() -> set[str]:
    """Every run of folders and files in the paths of the repository, with and without suffix."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    runs = set()
    for parts in (line.split("/") for line in listed.stdout.splitlines()):
        for last in (parts[-1], parts[-1].rpartition(".")[0]):
            full = [*parts[:-1], last]
            ends = range(1, len(full) + 1)
            runs |= {"/".join(full[i:j]) for j in ends for i in range(j)}
    return runs


@pytest.mark.parametrize("name", OF_SOURCE)
def test_named_files_exist(name):
    """Source files, and paths that begin with a folder of the repository."""
    wrong = []
    for span in spans(BY_NAME[name]):
        path = span.rstrip("/")
        if re.fullmatch(r"[\w.+-]+(/[\w.+-]+)*/?", span) and path not in paths() | GENERATED:
            if path.endswith(SOURCES) or ("/" in path and path.split("/")[0] in paths()):
                wrong.append(span)
    assert not wrong


@pytest.mark.parametrize(
    "folder",
    ["engine", "app", "runtime_py", "compiler", "relax_models", "src/wherry", "web", "mobile"],
)
def test_the_map_has_each_room(folder):
    page = BY_NAME["ARCHITECTURE.md"].read_text()
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True)
    files = [line.removeprefix(folder + "/") for line in listed.stdout.splitlines()]
    rooms = {name.partition("/")[0] for name in files if "/" in name}
    rooms -= {"include", "test", "testing", "bench"}
    assert not [room for room in sorted(rooms) if f"`{room}/`" not in page]


def test_the_tour_quotes_lines_that_stand_there():
    page = BY_NAME["docs/design/tour.md"].read_text()
    steps = re.findall(r"^\| (\d+) \| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert [int(number) for number, _, _ in steps] == [*range(1, 11)] * 3
    moved = [
        (file, line)
        for _, file, line in steps
        if line not in {known.strip() for known in (ROOT / file).read_text().splitlines()}
    ]
    assert not moved


# "Most tokens", "a second" as a rate, and other words for maximum, per, not installed, incomplete.
IDIOMS = re.compile(
    r"\bMost (tokens|bytes|rows)|\b(bits|tokens|requests) a (weight|token|step|second|minute)\b"
    r"|\d\}? a second\b|\bis not here\b|what is not here|\b(was|were) asked for\b|not whole\b"
    r"|\bmade again\b|(digest|SHA-256) is another\b|\bis no (JSON|UTF|complete|trace|socket)"
    r"|it was told to",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "room",
    ["src/wherry", "compiler", "quant", "relax_models", "runtime_py", "targets", "app", "engine"],
)
def test_texts_of_programs_are_plain(room):
    """Literals of the code that prints help and errors; comments and tests say what they like."""
    files = [f for suffix in ("*.py", "*.cc") for f in (ROOT / room).rglob(suffix)]
    wrong = [
        f"{file.relative_to(ROOT)}: {literal}"
        for file in files
        if "_test" not in file.name
        for literal in re.findall(r'(?<!")"[^"\n]+"(?!")', file.read_text())
        if IDIOMS.search(literal)
    ]
    assert not wrong


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


def test_performance_page_names_what_is_slower():
    low = {"shape": "a", "what": "decode", "threads": 1, "quant": "q", "ratio_wall": 0.5}
    high = {**low, "what": "prefill", "ratio_wall": 1.0, "ratio_gpu": {"decode_8": 0.9}}
    assert table.slower([low, high]) == [
        "a q decode, wall time: 0.50",
        "a q prefill, decode 8: 0.90",
    ]


def test_performance_page_is_what_rows_say():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page == table.page(rows.read_rows(rows.ROWS)), "Type: make docs"


@pytest.mark.parametrize("theme", charts.THEMES)
def test_charts_are_what_rows_say(theme):
    drawn = charts.svg(rows.read_rows(rows.ROWS), charts.THEMES[theme])
    assert (charts.FOLDER / f"speed-{theme}.svg").read_text() == drawn, "Type: make charts"
