"""Detects the weight format of a model folder and opens it with the matching reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wherry.base.json_file import read_object
from wherry.errors import ModelError, listing
from wherry.hub import file_names

from . import mistral
from .folder import GgufFile, MistralFolder, ModelFolder, WithHead
from .joined import with_others
from .pickled import open_pickled
from .quantized.checkpoint import open_quantized
from .quantized.mxfp4 import open_mxfp4
from .quantized.recognise import OF_EXPERTS, QuantizationSettings
from .safetensors import open_safetensors
from .tensors import Checkpoint

_FILE_NAME = re.compile(r"\w[\w.+ -]{0,200}", re.ASCII)


def open_checkpoint(folder: ModelFolder) -> Checkpoint:
    """Open the checkpoint of a model folder; only headers are read.

    Raises:
        ModelError: there are no weights, shards or tensors are missing, or a file is damaged or
            truncated.
        ToolchainError: the weights are pickled, and PyTorch, which reads them, is not installed.
    """
    match folder.origin:
        case WithHead(model, head):
            return _with_draft_head(folder.path, model, head)
        case GgufFile():
            return _gguf(folder.origin)
        case MistralFolder(source):
            return _mistral(source, folder.config)
    main = open_weights(folder.path, folder.quantized)
    dense = enumerate(folder.sentence.dense_folders)
    return with_others(main, {f"dense.{i}.": open_weights(path) for i, path in dense})


def _gguf(origin: GgufFile) -> Checkpoint:
    from .gguf.opening import open_gguf  # only GGUF models need this package

    main = open_gguf(origin.file)
    if origin.projector is None:
        return main
    from .gguf.header import read_header
    from .gguf.projector import open_projector

    return with_others(main, {"": open_projector(read_header(origin.projector))})


def _with_draft_head(folder: Path, model: ModelFolder, head: ModelFolder) -> Checkpoint:
    """Open the checkpoint of a model and its EAGLE-3 head (compiler/draft_head.py)."""
    others = {"draft_head.": open_checkpoint(head)}
    main = open_checkpoint(model)
    if (folder / file_names.DRAFT_PLACES).is_file():
        own = open_safetensors(folder, [file_names.DRAFT_PLACES], {})
        return with_others(with_others(main, others), {"draft_head.": own})
    return with_others(main, others)


def open_weights(folder: Path, quantized: QuantizationSettings | None = None) -> Checkpoint:
    """Open the weight files in a folder; quantized weights are read as float matrices.

    They are `model.safetensors`, or the shards that its index lists, or, if neither exists,
    pytorch_model.bin or the shards of its index; errors as in `open_checkpoint`.
    """
    if files := _files(folder, file_names.SAFETENSORS, file_names.SAFETENSORS_INDEX):
        checkpoint = open_safetensors(folder, *files)
        if quantized is None:
            return checkpoint
        if quantized.method == OF_EXPERTS:
            return open_mxfp4(checkpoint)
        return open_quantized(checkpoint, quantized)
    if quantized:
        raise ModelError(
            f"{folder} has {quantized.name} weights without {file_names.SAFETENSORS}. Save them as "
            "safetensors: model.save_pretrained(DIR) of transformers does."
        )
    if files := _files(folder, file_names.PICKLED, file_names.PICKLED_INDEX):
        return open_pickled(folder, *files)
    raise ModelError(_nothing_to_read(folder))


def _mistral(source: Path, config: Mapping[str, Any]) -> Checkpoint:
    files = _files(source, file_names.MISTRAL_WEIGHTS, file_names.MISTRAL_INDEX)
    if not files:
        raise ModelError(f"{source} has no {file_names.MISTRAL_WEIGHTS} any more.")
    return mistral.renamed(open_safetensors(source, *files), config)


def _files(folder: Path, single: str, index: str) -> tuple[list[str], dict[str, str]] | None:
    """Return the names of the weight files, and the mapping of tensor to file.

    The mapping is empty without an index file. Returns None if the folder has neither the file
    `single` nor `index`.

    Raises:
        ModelError: files are missing, or the index is damaged.
    """
    expected: dict[str, str] = {}
    if (folder / single).is_file():
        names = [single]
    elif (folder / index).is_file():
        expected = _read_index(folder / index)
        names = sorted(set(expected.values()))
    else:
        return None
    missing = [n for n in names if not (folder / n).is_file()]
    if missing:
        raise ModelError(
            f"{folder} lacks {len(missing)} of the {len(names)} files that {index} names:\n"
            f"{listing(missing)}\nDownload the model again."
        )
    return names, expected


def _nothing_to_read(folder: Path) -> str:
    others = sorted(
        p.name for p in folder.glob("*") if p.suffix in (".safetensors", ".bin", ".pth", ".gguf")
    )
    contents = f"it has {', '.join(others[:5])}" if others else "it has no weights at all"
    return (
        f"{folder} has neither {file_names.SAFETENSORS} nor {file_names.SAFETENSORS_INDEX} nor "
        f"{file_names.PICKLED}; {contents}.\n"
        "Save the model as safetensors: model.save_pretrained(DIR) of transformers does."
    )


def _read_index(path: Path) -> dict[str, str]:
    try:
        weight_map = read_object(path)["weight_map"]
        items = {str(tensor): str(file) for tensor, file in weight_map.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ModelError(f"{path} is damaged: it has no readable weight_map ({e!r}).") from e
    outside = sorted({f for f in items.values() if not _FILE_NAME.fullmatch(f)})
    if outside:
        shown = listing(repr(f[:100]) for f in outside)
        raise ModelError(f"{path} names files that are not in its folder:\n{shown}")
    return items
