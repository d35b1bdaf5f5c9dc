"""The only call from the runtime to the compiler, for a model that is not compiled yet."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from typing_extensions import Unpack

from .options import CompileOptions


def load_compiler() -> ModuleType:
    """Import the compiler at the first use."""
    from wherry.compiler import api

    return api


def compiled(model: str, *, thorough: bool = False, **options: Unpack[CompileOptions]) -> Path:
    """Compile `model` unless the cache has it; return the folder of the artefact.

    Args:
        model: a MODEL of `wherry compile`: a folder, hf://org/name, ...
        thorough: verify everything in the cache and make damaged files again.
        options: of the compilation.
    """
    artifact: Path = load_compiler().ensure_artifact(model, thorough=thorough, **options)
    return artifact
