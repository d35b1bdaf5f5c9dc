"""Packages that are not always installed, and what to type for them."""

from __future__ import annotations

import importlib.util

TORCH = "pip install 'wherry[torch]'"
TOKENIZERS = "pip install 'wherry[tokenizers]'"


def installed(module: str) -> bool:
    """Whether a package is here; it is not imported."""
    return importlib.util.find_spec(module) is not None
