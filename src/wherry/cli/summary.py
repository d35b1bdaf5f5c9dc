"""Describes a compiled folder in a few lines."""

from __future__ import annotations

from typing import Any

from wherry.artifact.manifest import Manifest


def lines(manifest: Manifest) -> list[str]:
    """Return the folder's target, its libraries, and the memory of a run, as lines of text."""
    target = manifest.target
    on = f" on {target['host']}" if target.get("host") else ""
    libraries = [manifest.library, *(v["library"] for v in target.get("variants", []))]
    rows = [(name, manifest.files[name].size, _kind(manifest)) for name in libraries]
    rest = [record.size for name, record in manifest.files.items() if name not in libraries]
    rows.append((f"{len(rest)} other files", sum(rest), f"weights in {manifest.quantization}, ..."))
    width = max(len(name) for name, _, _ in rows)
    memory = manifest.memory
    return [
        f"{manifest.name} for {target['name']}{on}",
        *(f"  {name:<{width}} {_size(size):>9}  {what}" for name, size, what in rows),
        f"  a run needs {_size(memory['weights'])} of weights, {_size(memory['workspace'])} of "
        f"workspace, {_size(memory['kv_per_token'])} per token of context",
        *_of_device(target),
    ]


def _of_device(target: dict[str, Any]) -> list[str]:
    lines = []
    if features := target.get("device_features"):
        lines.append(f"  the device must have {', '.join(features)}")
    if target.get("fast_math"):
        lines.append("  last bits may depend on what shares a batch")
    return lines


def _kind(manifest: Manifest) -> str:
    objects = manifest.target.get("objects")
    if objects is None:
        return "a library to load"
    symbols = objects.get("symbols")
    if symbols is None:
        return f"{objects['format']} objects, linked when the model is loaded"
    return f"{objects['format']} objects to link; " + f'found by SystemLib("{symbols}")'


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
