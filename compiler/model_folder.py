"""The folder of a MODEL in Hugging Face's layout, whatever its weights are stored in."""

from __future__ import annotations

from pathlib import Path

from wherry.base import settings
from wherry.base.progress import Progress
from wherry.hub import source
from wherry.hub.file_names import GGUF_RECORD
from wherry.hub.names import is_mistral
from wherry.quant.scheme import DEFAULT, OF_ENCODERS

from .checkpoint import mistral
from .checkpoint.quantized.recognise import OF_EXPERTS, recognise
from .load import describe

# The scheme of what no scheme of a quantized checkpoint holds: 4 bits would lose more than the
# first quantization. The experts of gpt-oss, in MXFP4, would take twice the memory in it: where a
# target has no kernels for them, they have 4 bits.
_OF_QUANTIZED = "q8f16_1"


def model_folder(model: str, progress: Progress | None = None) -> Path:
    """Return the folder of `model`, downloaded, or made of a GGUF file or of Mistral's own.

    Raises:
        UsageError, ModelError: as `wherry.hub.source.resolve`; or a GGUF file cannot be read.
    """
    found = source.resolve(model, cache=settings.cache_dir() / "hub", progress=progress)
    if is_mistral(found):
        return mistral.unfold(found, settings.cache_dir() / "weights")
    if found.is_dir():
        return found
    from .checkpoint.gguf.folder import unfold  # imports gguf, which no other model needs

    return unfold(found, settings.cache_dir() / "weights")


def own_label(folder: Path) -> str | None:
    """The name of the encoding that a model's checkpoint has; None: its weights are floats."""
    if not (folder / GGUF_RECORD).is_file():
        found = recognise(folder)
        return None if found is None else found.name
    from .checkpoint.gguf.folder import label_of

    return label_of(folder)


def default_scheme(folder: Path) -> str:
    """The name of the scheme of a model that is converted without `--quant`.

    Raises:
        ModelError: config.json describes no supported model.
    """
    if not (folder / GGUF_RECORD).is_file():
        found = recognise(folder)
        if found is not None and found.method != OF_EXPERTS:
            return _OF_QUANTIZED
        return OF_ENCODERS if getattr(describe(folder).config, "whole", False) else DEFAULT
    from .checkpoint.gguf.folder import scheme_of

    return scheme_of(folder)
