"""Selects the library of a compiled folder that fits this machine's CPU."""

from __future__ import annotations

from typing import Any

from wherry.artifact.manifest import Manifest
from wherry.machine.cpu import cpu_features

MODEL, TOWER = "model", "vision"  # stems of the first libraries' file names


def library_for(manifest: Manifest, features: frozenset[str] | None = None) -> str:
    """Return the file name of the fastest library of a model that a machine can run.

    Args:
        manifest: manifest of the compiled folder.
        features: features of the machine's CPU, in Linux's names; None: this machine's.
    """
    has = cpu_features() if features is None else features
    variants: list[dict[str, Any]] = manifest.target.get("variants", [])
    names = [str(v["library"]) for v in variants if has.issuperset(v["features"])]
    return names[-1] if names else manifest.library


def tower_for(manifest: Manifest, features: frozenset[str] | None = None) -> str | None:
    """Return the file name of the library of a model's vision tower; None: it takes no images.

    Args:
        manifest: manifest of the compiled folder.
        features: as of `library_for`.
    """
    name = TOWER + library_for(manifest, features).removeprefix(MODEL)
    return name if name in manifest.files else None
