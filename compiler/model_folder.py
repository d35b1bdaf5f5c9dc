"""The folder of a MODEL in Hugging Face's layout, whatever its weights are stored in."""

from __future__ import annotations

from wherry.base import settings
from wherry.base.progress import Progress
from wherry.errors import UsageError
from wherry.hub import names, source
from wherry.hub.names import is_mistral

from .checkpoint import mistral
from .checkpoint.folder import ModelFolder, read_folder


def model_folder(
    model: str, progress: Progress | None = None, mmproj: str | None = None
) -> ModelFolder:
    """Return the folder of `model`, downloaded, or made of a GGUF file or of Mistral's own.

    Args:
        model: MODEL of the command line.
        progress: called with the phase, the steps done, and the steps in total.
        mmproj: the projector file of a GGUF file; see `ArtifactSpec.mmproj`.

    Raises:
        UsageError, ModelError: as `wherry.hub.source.resolve` and `read_folder`; or a GGUF file
            cannot be read.
    """
    if mmproj is not None and not names.is_gguf(model):
        raise UsageError(
            f"--mmproj {mmproj} is for models in GGUF, whose vision tower is in a file of its own; "
            f"{model} is no GGUF. Leave it out."
        )
    hub = settings.cache_dir() / "hub"
    if mmproj is not None and names.parse_gguf(mmproj):
        mmproj = str(source.resolve(mmproj, cache=hub, progress=progress))
    path = source.resolve(model, cache=hub, progress=progress)
    weights = settings.cache_dir() / "weights"
    if is_mistral(path):
        path = mistral.unfold(path, weights)
    elif not path.is_dir():
        from .checkpoint.gguf.folder import unfold  # imports gguf, which no other model needs

        path = unfold(path, weights, mmproj)
    return read_folder(path)
