"""Opens a model of one or several GGUF files, with its tensors under their Hugging Face names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wherry.errors import ModelError, listing
from wherry.hub.gguf_files import SPLIT

from .architectures.family import GgufFamily, part_of
from .architectures.table import family_of
from .config import config_of
from .header import Header, TensorEntry, read_header
from .rope import TENSORS as ROPE_TENSORS
from .tensors import GgufCheckpoint, GgufTensor, parts
from .types import READ


@dataclass(frozen=True, slots=True)
class GgufModel:
    """The combined headers of all files of a model."""

    header: Header  # header of the first file, which contains the metadata
    files: tuple[Path, ...]
    tensors: Mapping[str, TensorEntry]  # tensors of all files, by their names in GGUF
    fingerprint: str  # hash of the files' names, sizes, modification times and headers
    family: GgufFamily
    config: Mapping[str, Any]  # fields of config.json

    def spare(self, name: str) -> bool:
        """Return whether a tensor, by its name in GGUF, is of multi-token prediction."""
        first = int(self.config["num_hidden_layers"])
        count = self.header.metadata[f"{_name(self)}.block_count"]
        blk, _, rest = name.partition(".")
        number = rest.partition(".")[0]
        return blk == "blk" and number.isdecimal() and first <= int(number) < count


def files_of(path: Path) -> tuple[Path, ...]:
    """Return all files of a model, given one of them.

    Raises:
        ModelError: lists the missing files.
    """
    match = SPLIT.fullmatch(path.name)
    if not match:
        return (path,)
    count = int(match["count"])
    first, last = f"{match['stem']}-", f"-of-{match['count']}{path.suffix}"
    names = (f"{first}{i:05}{last}" for i in range(1, count + 1))
    files = tuple(path.with_name(name) for name in names)
    if path not in files:
        raise ModelError(f"{path}: there is no such part of {count}; rename the file.")
    if missing := [f.name for f in files if not f.is_file()]:
        raise ModelError(
            f"{path} is one of {count} files, and {len(missing)} are not in {path.parent}:\n"
            f"{listing(missing)}\nDownload them to the same folder."
        )
    return files


def open_model(path: Path) -> GgufModel:
    """Read the headers of all files of a model, of which `path` is one.

    Raises:
        ModelError: files are missing or damaged, or the model is not supported.
    """
    files = files_of(path)
    headers = [read_header(file) for file in files]
    tensors: dict[str, TensorEntry] = {}
    digest = hashlib.sha256()
    for header in headers:
        again = [t.name for t in header.tensors if t.name in tensors]
        if again:
            raise ModelError(f"{header.path} has tensors of another file:\n{listing(again)}")
        tensors |= {t.name: t for t in header.tensors}
        digest.update(stamp(header).encode())
    family = family_of(headers[0])
    config = config_of(headers[0], tensors, family)
    return GgufModel(headers[0], files, tensors, digest.hexdigest(), family, config)


def stamp(header: Header) -> str:
    """Return a file's name, size, modification time and header's hash."""
    stat = header.path.stat()
    return f"{header.path.name} {stat.st_size} {stat.st_mtime_ns} {header.digest}"


def tensor_of(stored: TensorEntry) -> GgufTensor:
    """Return a tensor as the file has it."""
    return GgufTensor(
        stored.path,
        stored.layout.name,
        stored.shape,
        stored.offset,
        stored.offset + stored.nbytes,
        stored=stored.name,
        layout=stored.layout,
    )


def open_gguf(path: Path) -> GgufCheckpoint:
    """Open the checkpoint of a GGUF model, one of whose files is `path`.

    Raises:
        ModelError: as `open_model`; or lists tensors that the architecture does not have, or whose
            type is not supported.
    """
    model = open_model(path)
    tensors: dict[str, GgufTensor] = {}
    unknown = []
    for stored in model.tensors.values():
        if stored.name in ROPE_TENSORS or model.spare(stored.name):
            continue  # `config_of` reads the former; multi-token prediction has the latter
        if stored.layout.name not in READ:
            unknown.append(f"{stored.name}: {stored.layout.name}")
        elif not (names := model.family.names_of(stored.name)):
            unknown.append(
                f"{stored.name} {list(stored.shape)}, which {_name(model)} does not have"
            )
        else:
            tensors.update(_under(names, stored, model))
    if unknown:
        raise ModelError(
            f"{path} has tensors that are not read:\n{listing(unknown)}\n"
            f"Types that are read: {', '.join(READ)}."
        )
    return GgufCheckpoint(path.parent, MappingProxyType(tensors), model.files, model.fingerprint)


def _name(model: GgufModel) -> str:
    """Return the name of the model's architecture."""
    return str(model.header.metadata["general.architecture"])


def _under(
    names: tuple[str, ...], stored: TensorEntry, model: GgufModel
) -> Iterator[tuple[str, GgufTensor]]:
    """Yield the Hugging Face tensors, by name, that one tensor of a file contains."""
    tensor = tensor_of(stored)
    if "{}" in names[0]:  # the tensor stacks the matrices, or the biases, of all experts
        each = len(names)
        if len(stored.shape) < 2 or stored.shape[1] % each:
            raise ModelError(f"{stored.path}: {stored.name} {list(stored.shape)} has no experts")
        for i, part in enumerate(parts(tensor, stored.shape[0], each)):
            yield names[i % each].format(i // each), part
        return
    if change := model.family.changes.get(part_of(stored.name)):
        tensor = change(tensor, model.config)
    yield names[0], tensor
