"""What pyproject.toml asks for is what the package imports."""

from __future__ import annotations

import ast
import os
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from . import requirements

ROOT = Path(__file__).parent.parent


# What Python brings along where it runs in a browser.
BROWSER = {"pyodide"}
# Extras whose packages Wherry imports; the others bring programs and tests.
EXTRAS = ("ray", "torch")
# Of the extra "tokenizers" Wherry imports this one alone; it imports the others.
THROUGH = {"transformers"}
# Wherry opens its library without importing it (machine/tvm_runtime.py).
OPENED = {"apache-tvm-ffi-orcjit"}


def declared(field: str) -> set[str]:
    """Names of a list."""
    lines = requirements.declared()[field]
    return {_normal(re.match(r"[\w.-]+", line)[0]) for line in lines}


def imported() -> set[str]:
    """Names of the distributions that the package imports, at the top of files or inside."""
    modules: set[str] = set()
    for folder, _, names in os.walk(ROOT / "src" / "wherry", followlinks=True):
        for name in names:
            if name.endswith(".py"):
                modules |= _modules(Path(folder, name))
    known = packages_distributions()
    others = modules - set(sys.stdlib_module_names) - {"wherry"} - BROWSER
    return {_normal(known.get(module, [module])[0]) for module in others}


def _modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def test_each_dependency_is_imported_and_each_import_is_a_dependency():
    listed = declared("dependencies")
    assert listed >= OPENED
    assert imported() == (listed - OPENED).union(THROUGH, *map(declared, EXTRAS))
    assert declared("tokenizers") >= THROUGH
