"""What Python, C++ and TypeScript know alike: a JSON file each, which all of them read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(name: str) -> Any:
    """The data of one of the files here."""
    return json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
