"""What pyproject.toml asks for, one requirement a line: for pip, without building Wherry.

python -m tests.requirements [EXTRA...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # pip has the reader that later Pythons have
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def declared() -> dict[str, list[str]]:
    """Return the lists by name: "build", "dependencies", and each extra's."""
    parsed: dict[str, Any] = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project = parsed["project"]
    own = {"build": parsed["build-system"]["requires"], "dependencies": project["dependencies"]}
    return own | project["optional-dependencies"]


if __name__ == "__main__":
    for name in ("build", "dependencies", *sys.argv[1:]):
        print("\n".join(declared()[name]))
