"""Reads a folder in Hugging Face's layout: architecture and configuration."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import wherry.models.families
from wherry.artifact.head import Head, ScoreHead, read_head
from wherry.errors import ModelError
from wherry.hub.folder import read_json
from wherry.hub.sentence_transformers import head_of
from wherry.models.arch import Architecture, read_config

from .text_part import READ, text_part


@dataclass(frozen=True, slots=True)
class Described:
    """A model as its config.json describes it."""

    arch: Architecture
    config: Any  # an instance of arch.config
    raw: dict[str, Any]  # config.json, or the text model's part of it
    head: Head | None = None  # of a model that generates no text: embeddings or scores
    is_part: bool = False  # the folder has other models besides the text model

    def at(self, context: int) -> Described:
        """The model for sequences of up to `context` tokens."""
        return replace(self, config=self.config.at(context))

    @property
    def entries(self) -> tuple[str, ...]:
        """Entries of the library. Bare "...Model" classes of transformers have no LM head.

        Older classes with a head are called "...LMHeadModel".
        """
        if isinstance(self.head, ScoreHead):
            return ("forward",)
        named = self.raw.get("architectures") or ["?"]
        bare = all(name.endswith("Model") and "LMHead" not in name for name in named)
        return ("embed",) if self.head or bare else ("forward", "embed")


def architectures() -> list[str]:
    """Names of the files that end with an `ARCH`; `families` adds the aliases in them."""
    (folder,) = wherry.models.families.__path__
    return sorted(p.stem for p in Path(folder).glob("*.py") if "\nARCH = " in p.read_text())


def families() -> dict[str, Architecture]:
    """Every supported `model_type`, and its architecture."""
    found: dict[str, Architecture] = {}
    for name in architectures():
        arch: Architecture = importlib.import_module(f"wherry.models.families.{name}").ARCH
        found |= dict.fromkeys((arch.name, *arch.aliases), arch)
    return dict(sorted(found.items()))


def _family(name: object) -> Architecture | None:
    """The architecture of a `model_type`; only one family file is imported if it has that name."""
    if isinstance(name, str) and name in architectures():
        arch: Architecture = importlib.import_module(f"wherry.models.families.{name}").ARCH
        return arch
    return families().get(str(name))


def describe(folder: Path) -> Described:
    """Read config.json; find the architecture of its `model_type`, and the head.

    Raises:
        ModelError: there is no such architecture, or it does not support the configuration.
    """
    whole = read_json(folder / "config.json")
    part = text_part(whole)
    raw = whole if part is None else part
    name = raw.get("model_type")
    arch = _family(name)
    if arch is None:
        raise ModelError(_unknown(folder, whole, name))
    classes = raw.get("architectures") or []
    if not isinstance(classes, list) or not all(isinstance(c, str) for c in classes):
        raise ModelError(
            f"{folder}/config.json has architectures {repr(classes)[:100]}; it is a list of names "
            'of classes, as ["LlamaForCausalLM"].'
        )
    head = read_head(folder) or head_of(folder)
    return Described(arch, read_config(arch.config, raw), raw, head, part is not None)


def _unknown(folder: Path, whole: dict[str, Any], name: object) -> str:
    """The error for an unsupported model_type."""
    said = f"{folder}/config.json has model_type {repr(whole.get('model_type'))[:100]}"
    if name != whole.get("model_type"):
        said += f", whose text_config has {repr(name)[:100]}"
    elif isinstance(whole.get("text_config"), dict):
        return (
            f"{said}, a text model with others. Only the text models of "
            f"{', '.join(READ)} are read out of such a folder. If this one's text model computes "
            "text alone as it does here, save it by itself: transformers' AutoModelForCausalLM, "
            "then save_pretrained(DIR)."
        )
    return f"{said}; supported are {', '.join([*families(), *READ])}."
