"""Finds packages that are optional dependencies, and how to install them."""

from __future__ import annotations

import importlib.util

TORCH = "pip install 'wherry[torch]'"
TOKENIZERS = "pip install 'wherry[tokenizers]'"


def installed(module: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return importlib.util.find_spec(module) is not None
