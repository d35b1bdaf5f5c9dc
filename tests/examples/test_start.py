"""Each small program of examples/start runs, on the demo, and prints what it is about."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact

from ..app.vector_models import shared
from ..web import browser, package
from ..web.conftest import chromium, compiled, tools  # noqa: F401 # fixtures

FOLDER = Path(__file__).parents[2] / "examples" / "start"
PROGRAMS = sorted(FOLDER.glob("*.py"))
SAID = {
    "batch": r'\{"prompt": "What is the capital of France\?", "answer": "[^"]*Paris',
    "chat": r"> What is the capital of France\?\n.*Paris.*\n> And of Norway\?\n.+",
    "json_schema": r".+ is a (mammal|bird|fish) with [0-8] legs\n$",
    "search": r"Where does the animal sleep\? -> .+\(-?\d\.\d\d\)\n.*\(-?\d\.\d\d\)\n$",
    "several": r"> Who are you\?\n.+\n> Count from one to ten\.\n(?s:.*)three",
    "stream": r"(?s:.*\..*\..*\.)",
    "tools": r"^weather\(\{'city': '(Oslo|Paris|Rome)'\}\)\n.+",
}


def test_the_page_lists_them_all():
    listed = re.findall(r"^\| \[([^\]]+)\]\(\1\)", (FOLDER / "README.md").read_text(), re.M)
    there = {p.name for p in FOLDER.iterdir() if p.is_dir() or p.suffix in (".py", ".ipynb")}
    assert set(listed) == there and len(listed) == 10
    assert {p.stem for p in PROGRAMS} == SAID.keys()
    # Python looks for modules beside a script first.
    assert not {p.stem for p in PROGRAMS} & sys.stdlib_module_names


NIGHTLY = {"search": pytest.mark.nightly}  # compiles a model of its own


@pytest.mark.cpu
@pytest.mark.parametrize(
    "program", [pytest.param(p, marks=NIGHTLY.get(p.stem, ()), id=p.stem) for p in PROGRAMS]
)
def test_it_runs(program, monkeypatch, capsys):
    model = [shared("embedder")] if program.stem == "search" else []
    monkeypatch.setattr(sys, "argv", [str(program), *map(str, model)])
    runpy.run_path(str(program), run_name="__main__")
    assert re.search(SAID[program.stem], capsys.readouterr().out)


@pytest.mark.cpu
def test_the_notebook_runs(capsys):
    cells = json.loads((FOLDER / "notebook.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert "Paris" in capsys.readouterr().out


ASKS = """<script>
let asked = false;
const timer = setInterval(() => {
  const button = document.querySelector("button");
  const text = document.querySelector("p")?.textContent ?? "";
  if (!button || button.disabled || (asked && (text === "" || text.includes("runs on")))) return;
  if (!asked) { asked = true; button.click(); return; }
  clearInterval(timer);
  fetch("/", { method: "POST", body: JSON.stringify({ text }) });
}, 200);
</script>"""


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.parametrize("name", ["page_vite", "page_react"])
def test_the_page_answers(name, tools, chromium, compiled, tmp_path):  # noqa: F811
    packed = package.run("npm", "pack", "--silent", "--pack-destination", str(tmp_path)).split()[-1]
    place = tmp_path / "examples" / "start" / name
    shutil.copytree(FOLDER / name, place, ignore=shutil.ignore_patterns("node_modules", "public"))
    (tmp_path / "dist").mkdir()  # where package.json looks for it
    (tmp_path / packed).rename(tmp_path / "dist" / packed)
    package.run("npm", "install", "--silent", "--no-fund", "--no-audit", cwd=place)
    package.run("npm", "run", "--silent", "build", cwd=place)
    ensure_artifact("demo", target="wasm", out=tmp_path / "models" / "demo")
    html = (place / "dist" / "index.html").read_text() + ASKS
    folders = {"assets": place / "dist" / "assets", "models": tmp_path / "models"}
    said = browser.answer_of(folders, {}, 120, html.encode())
    assert said["text"].endswith("Paris."), said
