"""Finds packages that are optional dependencies, and how to install them."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

BROWSER = "pip install 'wherry[browser]'"
TORCH = "pip install 'wherry[torch]'"
TOKENIZERS = "pip install 'wherry[tokenizers]'"


def installed(module: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def zig() -> Path | None:
    """Return the program of the package ziglang, which has LLVM's linkers; None: not there."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).with_name("zig.exe" if os.name == "nt" else "zig")
    return program if program.is_file() else None
