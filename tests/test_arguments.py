"""How many arguments a function may have: more of them are a record."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("compiler", "passes", "quant", "relax_models", "runtime_py", "src/wherry", "targets")
MOST = 8
# File and function: why it has more.
EXCEPTIONS = {
    ("passes/references/paged.py", "body"): "TVMScript: its arguments are tensors",
    ("passes/references/paged.py", "func"): "TVMScript: its arguments are tensors",
    ("passes/references/recurrent.py", "func"): "TVMScript: its arguments are tensors",
    ("targets/kernels/cpu/rope.py", "rotate_normed"): "TVMScript: its arguments are tensors",
}


def crowded() -> dict[tuple[str, str], int]:
    """Functions with more than MOST arguments, `self` aside."""
    counts = {}
    for path in (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                a = node.args
                names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
                count = len(names) - (names[:1] in (["self"], ["cls"]))
                if count > MOST:
                    counts[path.relative_to(ROOT).as_posix(), node.name] = count
    return counts


def test_no_function_has_more_arguments_than_a_reader_can_hold():
    counts = crowded()
    new = [f"{file}: {name} has {counts[file, name]}" for file, name in counts.keys() - EXCEPTIONS]
    assert not new, "\n".join(sorted(new))
    assert EXCEPTIONS.keys() == counts.keys(), "an exception that is none any more"
