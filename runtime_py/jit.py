"""The one door from the run time to the compiler, opened only for a model not yet compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def compiled(
    model: str, *, target: str = "auto", quant: str | None = None, progress: Any = None
) -> Path:
    """Compile `model` unless the cache has it; the folder of the artefact.

    Args:
        model: anything that `wherry compile` accepts: a folder, hf://org/name, ...
        target: a preset's name, or "auto" for this machine.
        quant: a scheme's name, or None for the default.
        progress: what the compiler reports to.
    """
    from wherry.compiler.api import ensure_artifact

    artifact: Path = ensure_artifact(model, target=target, quant=quant, progress=progress)
    return artifact
