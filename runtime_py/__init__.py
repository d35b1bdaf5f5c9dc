"""The runtime: MLCEngine, AsyncMLCEngine and an OpenAI-compatible server over the C++ core.

Importing this package loads neither TVM nor the compiler.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_engine import AsyncMLCEngine
    from .engine import MLCEngine
    from .errors import RequestError
    from .server.app import create_app
    from .server.serving import serve

_ENGINES = "browser." if sys.platform == "emscripten" else ""
_HOMES = {
    "AsyncMLCEngine": f"{_ENGINES}async_engine",
    "MLCEngine": f"{_ENGINES}engine",
    "RequestError": "errors",
    "create_app": "server.app",
    "serve": "server.serving",
}

__all__ = ["AsyncMLCEngine", "MLCEngine", "RequestError", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that an engine alone loads no web framework."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
