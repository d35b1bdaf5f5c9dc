"""The directions in which the packages may import each other (ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "wherry"
# Modules beside the packages.
BASE = {
    "artifact",
    "cache",
    "cuda_driver",
    "devices",
    "errors",
    "integrity",
    "json_file",
    "locks",
    "plugins",
    "pruning",
    "running",
    "ops",
    "settings",
    "temporary",
    "tvm_runtime",
}
ALLOWED = {
    "bench": {"runtime"},
    "cli": {"bench", "compiler", "native", "quant", "runtime", "targets", "web"},
    "compiler": {"passes", "models", "quant", "targets"},
    "passes": set(),
    "models": set(),
    "native": {"targets"},
    "quant": set(),
    "targets": set(),
    "runtime": set(),
    "web": set(),
}
# The one door from the run time to the compiler.
DOORS = {("runtime", "jit.py"): {"compiler"}}


def imported(path: Path) -> set[str]:
    """Packages and modules of wherry that a file imports, at its top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
            if node.module == "wherry":
                names = [f"wherry.{alias.name}" for alias in node.names]
        found |= {n.split(".")[1] for n in names if n.startswith("wherry.")}
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_directions(package):
    files = sorted((SRC / package).rglob("*.py"))
    assert files
    problems = []
    for path in files:
        allowed = ALLOWED[package] | BASE | {package}
        allowed |= DOORS.get((package, path.name), set())
        outside = {name for name in imported(path) - allowed if (SRC / name).exists()}
        problems += [f"{path.relative_to(SRC)} imports {name}" for name in sorted(outside)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("module", ["wherry", "wherry.runtime", "wherry.cli"])
def test_importing_loads_no_compiler(module):
    code = f"import sys, {module}; print([m for m in sys.modules if m.split('.')[0] == 'tvm'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SRC.parent)}, capture_output=True
    )
    assert done.stdout.decode().strip() == "[]", done.stderr.decode()
