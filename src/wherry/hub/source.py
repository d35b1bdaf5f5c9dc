"""Resolves the argument MODEL to a folder in Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path

from wherry.base.progress import Progress

from . import names
from .download import fetch
from .gguf_files import SUFFIX


def resolve(model: str, *, cache: Path, progress: Progress | None = None) -> Path:
    """Return the folder or GGUF file of `model`; one of the hub is downloaded to `cache` first.

    Args:
        model: "demo", a folder, a GGUF file, or hf://ORG/NAME[@REVISION].
        cache: folder for downloads.
        progress: called with ("download", bytes done, total bytes).

    Raises:
        UsageError: `model` is none of these.
        ModelError: the model does not exist, or cannot be read.
    """
    if named := names.parse_gguf(model):
        repo, revision, gguf = named
        there = fetch(repo, revision, cache=cache, progress=progress, gguf=gguf)
        return min(p for p in there.rglob("*") if p.suffix.lower() == SUFFIX)
    if parts := names.parse_hub(model):
        return names.with_config(fetch(*parts, cache=cache, progress=progress), model)
    names.check(model)
    path = names.folder_of(model)
    return names.with_config(path, model) if path.is_dir() else path
