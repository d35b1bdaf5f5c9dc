"""The one door from the run time to the compiler, opened only for a model not yet compiled."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from typing_extensions import Unpack

from .options import CompileOptions


def load_compiler() -> ModuleType:
    """The compiler, imported by whoever asks first."""
    from wherry.compiler import api

    return api


def compiled(model: str, *, thorough: bool = False, **options: Unpack[CompileOptions]) -> Path:
    """Compile `model` unless the cache has it; the folder of the artefact.

    Args:
        model: anything that `wherry compile` accepts: a folder, hf://org/name, ...
        thorough: read all that the cache has of it; what is damaged is made again.
        options: what decides which compilation.
    """
    artifact: Path = load_compiler().ensure_artifact(model, thorough=thorough, **options)
    return artifact
