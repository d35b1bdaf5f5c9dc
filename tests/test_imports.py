"""The directions in which rooms may import each other (ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "wherry"
# What every other room may import, the lowest first: each imports those before it.
BASE = ("errors", "base", "tools", "machine", "artifact", "cache", "data", "ops")
ALLOWED = {
    "bench": {"runtime"},
    "cli": {"bench", "compiler", "hub", "packager", "quant", "runtime", "targets", "web"},
    "compiler": {"hub", "passes", "models", "quant", "targets"},
    "hub": set(),
    "passes": set(),
    "models": set(),
    "packager": {"targets"},
    "quant": set(),
    "targets": set(),
    "runtime": set(),
    "web": set(),
}
# The one door from the run time to the compiler, and to the names of its models.
DOORS = {"runtime/load/jit.py": {"compiler", "hub"}}
# The rooms of the run time, the lowest first.
RUNTIME = (
    *("errors", "caller", "core", "text", "grammar", "host", "answers", "vector_answers"),
    *("arguments", "shaped", "browser", "load", "base_engine", "async_engine", "engine"),
    *("server", "ray_serve"),
)

# The rooms of model architectures, the lowest first. A file in `families/` imports no other there:
# what two families share stands in a room below.
MODELS = (
    *("layer_kinds", "output", "step", "weights", "layers", "config", "arch", "decoder", "encoder"),
    *("encoder_decoder", "rotary_encoder", "blocks", "classic", "lineages", "drafts", "towers"),
    "families",
)


def imported(path: Path, parent: tuple[str, ...]) -> set[str]:
    """Names in the package `parent` that a file imports, at its top or inside functions."""
    package = ("wherry", *path.relative_to(SRC).parts[:-1])
    names: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = (*above, *(node.module.split(".") if node.module else ()))
            names |= {(*base, alias.name) for alias in node.names}
    depth = len(parent)
    return {name[depth] for name in names if name[:depth] == parent and len(name) > depth}


def rooms(folder: Path) -> dict[str, list[Path]]:
    """The rooms of a package, each with its files; a file outside of them is a room of its own."""
    files = {p.stem: [p] for p in folder.glob("*.py") if not p.stem.startswith("__")}
    for package in folder.glob("*/__init__.py"):
        files[package.parent.name] = sorted(package.parent.rglob("*.py"))
    return files


@pytest.mark.parametrize("package", [*BASE, *ALLOWED])
def test_directions(package):
    every = rooms(SRC)
    assert every.keys() - {"serve_ray"} == {*BASE, *ALLOWED}
    below = BASE[: BASE.index(package)] if package in BASE else {*BASE, *ALLOWED[package]}
    problems = []
    for path in every[package]:
        name = path.relative_to(SRC).as_posix()
        allowed = {package, *below} | DOORS.get(name, set())
        outside = imported(path, ("wherry",)) & every.keys() - allowed
        problems += [f"{name} imports {other}" for other in sorted(outside)]
    assert not problems, "\n".join(problems)


def upward(package: str, order: tuple[str, ...]) -> list[str]:
    """Imports inside a package of a room that `order` has after the importing file's own."""
    every = rooms(SRC / package)
    assert every.keys() == set(order)
    problems = []
    for place, room in enumerate(order):
        for path in every[room]:
            above = imported(path, ("wherry", package)) & set(order[place + 1 :])
            name = path.relative_to(SRC).as_posix()
            problems += [f"{name} imports {other}" for other in sorted(above)]
    return problems


@pytest.mark.parametrize(("package", "order"), [("runtime", RUNTIME), ("models", MODELS)])
def test_directions_inside(package, order):
    assert not upward(package, order)


def test_families_share_through_the_rooms_below():
    families = ("wherry", "models", "families")
    problems = []
    for path in sorted(SRC.joinpath(*families[1:]).glob("*.py")):
        others = imported(path, families)
        problems += [f"families/{path.name} imports {other}" for other in sorted(others)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("module", ["wherry", "wherry.runtime", "wherry.cli"])
def test_importing_loads_no_compiler(module):
    code = f"import sys, {module}; print([m for m in sys.modules if m.split('.')[0] == 'tvm'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SRC.parent)}, capture_output=True
    )
    assert done.stdout.decode().strip() == "[]", done.stderr.decode()
