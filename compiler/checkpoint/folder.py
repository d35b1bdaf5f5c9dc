"""What the small files of a model's folder say. They are read once, here, and handed down."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.artifact.head import Head, read_head
from wherry.artifact.manifest import FURTHER_TEMPLATES
from wherry.base.json_file import read_object
from wherry.base.locks import making, touch
from wherry.base.temporary import write_atomically
from wherry.errors import ModelError
from wherry.hub.file_names import DRAFT_HEAD, GGUF_RECORD, MISTRAL_RECORD, OLDER_TOKENIZERS
from wherry.hub.folder import optional_json, read_json
from wherry.hub.sentence_transformers import SentenceFiles

from .quantized.recognise import QuantizationSettings, recognise
from .text_part import text_part

CONFIG, TOKENIZER, TEMPLATE = "config.json", "tokenizer.json", "chat_template.jinja"
_ABOUT = ("merges.txt", "added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The weights are in a GGUF file, of which `gguf/folder.py` wrote the folder."""

    file: Path
    scheme: str  # the quantization scheme closest to the types in the file
    label: str  # the type that most weights have, such as "Q4_K"
    projector: Path | None = None  # the file of the vision tower; None: the model has none


@dataclass(frozen=True, slots=True)
class MistralFolder:
    """The weights are in a folder of Mistral's own layout, of which `mistral.py` wrote this one."""

    folder: Path


@dataclass(frozen=True, slots=True)
class WithHead:
    """The weights are those of a model and of an EAGLE-3 head, joined by `draft_head.py`."""

    model: ModelFolder
    head: ModelFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A model's folder in Hugging Face's layout, without its weights."""

    path: Path
    config: Mapping[str, Any]  # content of config.json
    # config.json of the text model alone; None: the folder has no vision or audio models.
    text: Mapping[str, Any] | None
    # How the weights are quantized; None: they are not, or in GGUF.
    quantized: QuantizationSettings | None
    head: Head | None  # of wherry-head.json, in folders that a conversion or compilation wrote
    sentence: SentenceFiles  # of sentence-transformers
    tokenizer_config: Mapping[str, Any]  # content of tokenizer_config.json
    # The files that tokenizer.json is converted from; (): it exists, or no older format does.
    older_tokenizer: tuple[Path, ...]
    origin: GgufFile | MistralFolder | WithHead | None  # None: the weights are in the folder

    @property
    def raw(self) -> Mapping[str, Any]:
        """Return the text model's config.json."""
        return self.config if self.text is None else self.text

    @property
    def gguf(self) -> GgufFile | None:
        """Return the GGUF file that has the model's weights; None: they are in other files."""
        origin = self.origin.model.origin if isinstance(self.origin, WithHead) else self.origin
        return origin if isinstance(origin, GgufFile) else None

    @property
    def label(self) -> str | None:
        """Return the name of the checkpoint's encoding; None: its weights are floats."""
        if self.gguf:
            return self.gguf.label
        return None if self.quantized is None else self.quantized.name

    @property
    def has_tokenizer(self) -> bool:
        """Return whether there is a tokenizer, in any format."""
        return bool(self.older_tokenizer) or (self.path / TOKENIZER).is_file()

    @property
    def has_template(self) -> bool:
        """Return whether there is a chat template, in any of its places."""
        files = (p for kind in ("chat_template*", FURTHER_TEMPLATES) for p in self.path.glob(kind))
        return "chat_template" in self.tokenizer_config or any(files)

    @property
    def template(self) -> str | None:
        """Return the chat template; None: there is none, or several by name."""
        apart = self.path / TEMPLATE
        if apart.is_file():
            return apart.read_text("utf-8")
        template = self.tokenizer_config.get("chat_template")
        return template if isinstance(template, str) else None


def read_folder(path: Path) -> ModelFolder:
    """Read the small files of a folder.

    Raises:
        ModelError: a file is damaged, or the weights are quantized in a format that is not read.
    """
    config = read_json(path / CONFIG)
    tokenizer_config = optional_json(path / "tokenizer_config.json")
    return ModelFolder(
        path=path,
        config=config,
        text=text_part(config),
        quantized=recognise(path, config),
        head=read_head(path),
        sentence=SentenceFiles.read(path, tokenizer_config),
        tokenizer_config=tokenizer_config,
        older_tokenizer=_older_tokenizer(path),
        origin=_origin(path),
    )


def write_folder(
    path: Path, record: str, key: str, contents: Callable[[], Mapping[str, bytes | str]], what: str
) -> Path:
    """Write a folder in the cache for weights in another place, unless it is current; return it.

    Args:
        path: the folder.
        record: name of its record, a JSON object with the places of the weights and `key`.
        key: a hash of everything that determines the contents.
        contents: returns the files by name; the record is last, so it marks a complete folder.
        what: description for the log.
    """
    try:
        current = read_object(path / record).get("key") == key
    except (OSError, ValueError):
        current = False
    if not current:
        files = contents()
        with making(path, what):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
            for name, content in files.items():
                write_atomically(path / name, content)
    touch(path)
    return path


def _older_tokenizer(folder: Path) -> tuple[Path, ...]:
    older = tuple(folder / name for name in OLDER_TOKENIZERS if (folder / name).is_file())
    if not older or (folder / TOKENIZER).is_file():
        return ()
    return (*older, *(folder / name for name in _ABOUT if (folder / name).is_file()))


def _origin(folder: Path) -> GgufFile | MistralFolder | WithHead | None:
    """Read the record in a folder that was written for weights in another place."""
    if (path := folder / DRAFT_HEAD).is_file():
        return WithHead(*(read_folder(Path(p)) for p in _record(path, "model", "head")))
    if (path := folder / GGUF_RECORD).is_file():
        file, scheme, label, projector = _record(path, "file", "scheme", "label", "projector")
        return GgufFile(Path(file), scheme, label, Path(projector) if projector else None)
    if (path := folder / MISTRAL_RECORD).is_file():
        return MistralFolder(*map(Path, _record(path, "folder")))
    return None


def _record(path: Path, *fields: str) -> list[str]:
    """Return fields of a record.

    Raises:
        ModelError: the record is damaged.
    """
    try:
        record = read_object(path)
        return [str(record[field]) for field in fields]
    except (OSError, ValueError, KeyError) as e:
        raise ModelError(f"{path} is damaged ({e!r}). Remove {path.parent}") from e
