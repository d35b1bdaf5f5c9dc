"""Converts a GGUF file, except for its weights, to a model folder in Hugging Face's layout.

    config.json, generation_config.json, tokenizer.json, tokenizer_config.json
    preprocessor_config.json: settings of images, if the model has a projector file
    wherry-gguf.json: paths of the GGUF file and of the projector's, and the quantization scheme
        closest to the former's types

Later steps therefore read only one layout; `open_checkpoint` finds the weights through
wherry-gguf.json. This file is written last, so its presence means that the folder is complete.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from wherry.cache.entries import safe
from wherry.errors import ModelError
from wherry.hub.file_names import GGUF_RECORD as RECORD
from wherry.hub.file_names import PROCESSOR
from wherry.hub.gguf_files import stem

from ..folder import write_folder
from .header import Header
from .opening import GgufModel, files_of, open_model
from .projector import config_with
from .projector_choice import NONE, candidates, chosen
from .reencoding import common, nearest
from .tokenizer import build
from .vocabulary import GgufVocabulary, vocabulary_of

_TEMPLATE = "tokenizer.chat_template"
_SAMPLING = {  # metadata field general.sampling.NAME -> field of generation_config.json
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
}


def unfold(file: Path, home: Path, mmproj: str | None = None) -> Path:
    """Return the model folder of a GGUF model; create or update it if the files have changed.

    Args:
        file: one of the model's files.
        home: the parent folder; the model folder is `home/NAME-gguf-HASH`, with a hash of the
            first file's path and of `mmproj`.
        mmproj: the model's projector file, "none", or None: one next to the model, if there is one.

    Raises:
        ModelError: the files are damaged, or the model, its tokenizer or its projector is not
            supported.
        UsageError: there is no file `mmproj`.
    """
    files = files_of(file)
    projectors = candidates(file, mmproj)
    place = str(files[0].resolve())
    if mmproj is not None:
        place += f"\n{projectors[0].resolve() if projectors else NONE}"
    digest = hashlib.sha256(place.encode()).hexdigest()[:12]
    folder = home / f"{safe(stem(file.name))}-gguf-{digest}"
    key = _key((*files, *projectors))
    what = f"the configuration of {file.name}"

    def contents() -> dict[str, str]:
        return _contents(open_model(file), projectors, mmproj is not None, key)

    return write_folder(folder, RECORD, key, contents, what)


def _key(files: tuple[Path, ...]) -> str:
    """Return a hash of the files' names, sizes and modification times, and of the reader's code."""
    digest = hashlib.sha256(_own_code())
    for file in files:
        try:
            stat = file.stat()
        except OSError as e:
            raise ModelError(f"{file} cannot be read: {e.strerror}.") from e
        digest.update(f"{file.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@cache
def _own_code() -> bytes:
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


def _contents(
    model: GgufModel, projectors: tuple[Path, ...], named: bool, key: str
) -> dict[str, str]:
    """Return the contents of the folder's files by name, wherry-gguf.json last."""
    vocabulary = vocabulary_of(model.header)
    tokenizer = build(vocabulary)
    config, images = model.config, {}
    projector = chosen(projectors, config, vocabulary.tokens, named=named)
    if projector is not None:
        config, processor = config_with(projector, config, vocabulary.tokens)
        images = {PROCESSOR: _json(processor)}
    record = {
        "file": str(model.files[0].resolve()),
        "projector": "" if projector is None else str(projector.path.resolve()),
        "scheme": nearest(model.tensors.values()),
        "label": common(model.tensors.values()),
        "key": key,
    }
    return {
        "config.json": _json(config),
        "generation_config.json": _json(_generation(model.header, vocabulary)),
        "tokenizer.json": tokenizer.to_str(),
        "tokenizer_config.json": _json(_tokenizer_config(model.header, vocabulary)),
        **images,
        RECORD: _json(record),
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _generation(header: Header, vocabulary: GgufVocabulary) -> dict[str, Any]:
    """Return generation_config.json: the end tokens, and sampling parameters from the metadata."""
    prefix = "general.sampling."
    given = {
        hf_name: header.metadata[prefix + gguf_name]
        for gguf_name, hf_name in _SAMPLING.items()
        if prefix + gguf_name in header.metadata
    }
    return {"eos_token_id": list(vocabulary.ends), **given}


def _tokenizer_config(header: Header, vocabulary: GgufVocabulary) -> dict[str, Any]:
    """Return tokenizer_config.json: special tokens, and the chat template if there is one."""
    config: dict[str, Any] = {
        f"{role}_token": text
        for role in ("bos", "eos", "unk", "pad")
        if (text := vocabulary.text(role)) is not None
    }
    template = header.metadata.get(_TEMPLATE)
    if template is None or template == "":  # an empty template would lose every message
        return config
    if not isinstance(template, str):
        raise ModelError(f"{header.path}: {_TEMPLATE} is a {type(template).__name__}, not a text")
    return {**config, "chat_template": template}
