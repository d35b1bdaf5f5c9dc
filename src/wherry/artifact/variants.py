"""Which of the libraries of a compiled folder a machine loads."""

from __future__ import annotations

from typing import Any

from wherry.artifact.manifest import Manifest
from wherry.machine.cpu import cpu_features


def library_for(manifest: Manifest, features: frozenset[str] | None = None) -> str:
    """File name of the best of a model's libraries that a machine can run.

    Args:
        manifest: of the compiled folder.
        features: of the machine's CPU, in Linux's names; None: of this one.
    """
    has = cpu_features() if features is None else features
    variants: list[dict[str, Any]] = manifest.target.get("variants", [])
    names = [str(v["library"]) for v in variants if has.issuperset(v["features"])]
    return names[-1] if names else manifest.library
