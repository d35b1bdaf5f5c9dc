"""Wherry: compile a language model once and run it anywhere.

    from wherry import MLCEngine
    with MLCEngine("demo") as engine:
        print(engine.chat.completions.create(messages=[{"role": "user", "content": "Hello!"}]))

Importing this module loads neither TVM nor the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wherry.runtime import AsyncMLCEngine, MLCEngine

__version__ = "0.1.0"
__all__ = ["AsyncMLCEngine", "MLCEngine"]


def __getattr__(name: str) -> Any:
    """Import the engines at their first use."""
    if name in __all__:
        return getattr(importlib.import_module("wherry.runtime"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
