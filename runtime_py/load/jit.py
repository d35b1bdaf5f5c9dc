"""The only place where the runtime calls the compiler: for a model that is not compiled yet."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from typing_extensions import Unpack

from wherry.hub import names

from .options import CompileOptions


def load_compiler() -> ModuleType:
    """Import and return the compiler; done at its first use, because it takes seconds."""
    from wherry.compiler import api

    return api


def compiled(model: str, *, thorough: bool = False, **options: Unpack[CompileOptions]) -> Path:
    """Compile `model` unless the cache has it; return the folder of the artefact.

    Args:
        model: a MODEL of `wherry compile`: a folder, hf://org/name, ...
        thorough: verify every file in the cache and replace damaged ones.
        options: options of the compilation.
    """
    names.check(model)  # now, as the compiler's import takes seconds
    if progress := options.get("progress"):
        progress("prepare", 0, 1)
    compiler = load_compiler()
    if progress:
        progress("prepare", 1, 1)
    artifact: Path = compiler.ensure_artifact(model, thorough=thorough, **options)
    return artifact
