"""The source distribution has all that CMake builds of it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_what_is_built_where_a_compiler_is_there_is_in_it():
    match = re.search(r"sdist\.exclude = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.S)
    excluded = [pattern.strip("/") for pattern in re.findall('"([^"]+)"', match[1])]
    assert "runtime_py" in excluded
    text = (ROOT / "CMakeLists.txt").read_text()
    named = {path for path in re.findall(r"\b(?:web|engine|mobile|cmake)/[\w./-]*\w", text)}
    assert {"web/core", "web/scripts/bundle_page.js", "web/package-lock.json"} <= named
    missing = [n for n in named for e in excluded if n == e or n.startswith(f"{e}/")]
    assert missing == []
