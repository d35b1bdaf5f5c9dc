"""The one door from the run time to the compiler, opened only for a model not yet compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def compiled(
    model: str,
    *,
    target: str = "auto",
    quant: str | None = None,
    kv_dtype: str = "auto",
    activations: str = "auto",
    progress: Any = None,
) -> Path:
    """Compile `model` unless the cache has it; the folder of the artefact.

    Args:
        model: anything that `wherry compile` accepts: a folder, hf://org/name, ...
        target: a preset's name, or "auto" for this machine.
        quant: a scheme's name, or None for the default.
        kv_dtype: of the cache, or "auto" for the target's own.
        activations: what 4- and 8-bit weights are multiplied by, or "auto" likewise.
        progress: what the compiler reports to.
    """
    from wherry.compiler.api import ensure_artifact

    artifact: Path = ensure_artifact(
        model,
        target=target,
        quant=quant,
        kv_dtype=kv_dtype,
        activations=activations,
        progress=progress,
    )
    return artifact
