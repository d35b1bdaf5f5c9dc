"""Which format the weights of a folder have, and what reads it."""

from __future__ import annotations

import re
from pathlib import Path

from wherry.base.json_file import read_object
from wherry.errors import ModelError, listing
from wherry.hub import file_names

from .pickled import open_pickled
from .safetensors import open_safetensors
from .tensors import Checkpoint

_FILE_NAME = re.compile(r"\w[\w.+ -]{0,200}", re.ASCII)


def open_checkpoint(folder: Path) -> Checkpoint:
    """Read the headers of `model.safetensors`, or of the shards that its index names.

    Where there are none, of pytorch_model.bin in the same way. The folder that was made of a GGUF
    file has that file's tensors.

    Raises:
        ModelError: no weights, missing shards or tensors, a damaged or truncated file.
        ToolchainError: weights that only PyTorch reads, which is not here.
    """
    if (folder / file_names.GGUF_RECORD).is_file():
        return _gguf(folder)
    if found := _files(folder, file_names.SAFETENSORS, file_names.SAFETENSORS_INDEX):
        return open_safetensors(folder, *found)
    if found := _files(folder, file_names.PICKLED, file_names.PICKLED_INDEX):
        return open_pickled(folder, *found)
    raise ModelError(_nothing_to_read(folder))


def _gguf(folder: Path) -> Checkpoint:
    from .gguf.folder import source_of  # imports gguf, which no other model needs
    from .gguf.opening import open_gguf

    file = source_of(folder)
    assert file is not None
    return open_gguf(file)


def _files(folder: Path, single: str, index: str) -> tuple[list[str], dict[str, str]] | None:
    """The names of the files with weights, and of each tensor its file if an index says it."""
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
    found = f"it has {', '.join(others[:5])}" if others else "it has no weights at all"
    return (
        f"{folder} has neither {file_names.SAFETENSORS} nor {file_names.SAFETENSORS_INDEX} nor "
        f"{file_names.PICKLED}; {found}.\n"
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
        raise ModelError(f"{path} names files that are no files of its folder:\n{shown}")
    return items
