"""The folder of a MODEL in Hugging Face's layout, whatever its weights are stored in."""

from __future__ import annotations

from wherry.base import settings
from wherry.base.progress import Progress
from wherry.hub import source
from wherry.hub.names import is_mistral

from .checkpoint import mistral
from .checkpoint.folder import ModelFolder, read_folder


def model_folder(model: str, progress: Progress | None = None) -> ModelFolder:
    """Return the folder of `model`, downloaded, or made of a GGUF file or of Mistral's own.

    Raises:
        UsageError, ModelError: as `wherry.hub.source.resolve` and `read_folder`; or a GGUF file
            cannot be read.
    """
    path = source.resolve(model, cache=settings.cache_dir() / "hub", progress=progress)
    weights = settings.cache_dir() / "weights"
    if is_mistral(path):
        path = mistral.unfold(path, weights)
    elif not path.is_dir():
        from .checkpoint.gguf.folder import unfold  # imports gguf, which no other model needs

        path = unfold(path, weights)
    return read_folder(path)
