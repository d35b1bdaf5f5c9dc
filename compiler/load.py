"""Reads a model folder in Hugging Face's layout: architecture and configuration."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import wherry.models.families
from wherry.artifact.head import Head, ScoreHead, read_head
from wherry.errors import ModelError, UsageError
from wherry.hub.file_names import DRAFT_HEAD_FIELD
from wherry.hub.folder import read_json
from wherry.hub.sentence_transformers import head_of
from wherry.models.arch import Architecture, read_config
from wherry.models.bit_linear import with_bit_linears
from wherry.models.eagle3 import Head as DraftHead
from wherry.models.eagle3 import with_head

from .checkpoint.quantized.recognise import recognise
from .encoders import class_head, default_head, output_of, require_last
from .text_part import READ, text_part


@dataclass(frozen=True, slots=True)
class Described:
    """A model as its config.json describes it."""

    arch: Architecture
    config: Any  # an instance of arch.config
    raw: dict[str, Any]  # content of config.json, or the text model's part of it
    head: Head | None = None  # pooling or score head of a model that generates no text
    is_part: bool = False  # whether the folder also has vision or audio models
    mtp: bool = False  # whether the block of multi-token prediction belongs to the model

    def at(self, context: int) -> Described:
        """Return the model configured for sequences of up to `context` tokens."""
        return replace(self, config=self.config.at(context))

    def with_mtp(self, mtp: bool) -> Described:
        """Return the model with its block of multi-token prediction, if `mtp` asks for it.

        Raises:
            UsageError: the model has no such block.
        """
        if not mtp:
            return self
        has, drafts = f"model_type {self.arch.name}", self.arch.drafts
        if drafts is None:
            known = sorted(name for name, arch in families().items() if arch.drafts is not None)
            raise UsageError(
                f"--mtp asks for a block of multi-token prediction; {has} has none that is known "
                f"here. Those of {', '.join(known)} are. Leave out --mtp, or draft tokens by "
                "another model: --draft MODEL"
            )
        if (lacks := drafts.lacks(self.config)) is not None:
            raise UsageError(
                f"--mtp asks for a block of multi-token prediction; config.json ({has}) says "
                f"{lacks}. Leave out --mtp, or take a checkpoint that has the block."
            )
        made = replace(self, mtp=True)
        if "draft" not in made.entries:
            raise UsageError(f"--mtp drafts tokens; this model ({has}) writes none. Leave it out.")
        return made

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the library's entries: "forward" for models with an LM head, "embed" for others.

        transformers calls classes without an LM head "...Model", and some older classes with one
        "...LMHeadModel".
        """
        if getattr(self.config, "whole", False):
            return ("embed",)
        if getattr(self.config, "reads_source", False):
            return ("forward", "encode")
        if isinstance(self.head, ScoreHead):
            return ("forward",)
        named = self.raw.get("architectures") or ["?"]
        bare = all(name.endswith("Model") and "LMHead" not in name for name in named)
        if self.head or bare:
            return ("embed",)
        return ("forward", "embed", "draft") if self.mtp else ("forward", "embed")


def architectures() -> list[str]:
    """Return the names of the family files that define an `ARCH`; `families` adds its aliases."""
    (folder,) = wherry.models.families.__path__
    return sorted(p.stem for p in Path(folder).glob("*.py") if "\nARCH = " in p.read_text())


def families() -> dict[str, Architecture]:
    """Return every supported `model_type` with its architecture."""
    found: dict[str, Architecture] = {}
    for name in architectures():
        arch: Architecture = importlib.import_module(f"wherry.models.families.{name}").ARCH
        found |= dict.fromkeys((arch.name, *arch.aliases), arch)
    return dict(sorted(found.items()))


def _family(name: object) -> Architecture | None:
    """Return the architecture of a `model_type`.

    If a family file has that name, no other family file is imported.
    """
    if isinstance(name, str) and name in architectures():
        arch: Architecture = importlib.import_module(f"wherry.models.families.{name}").ARCH
        return arch
    return families().get(str(name))


def describe(folder: Path) -> Described:
    """Read config.json; return the architecture of its `model_type`, its configuration and head.

    Raises:
        ModelError: there is no such architecture, it does not support the configuration, or the
            weights are quantized in a format that is not read.
    """
    whole = read_json(folder / "config.json")
    quantized = recognise(folder)
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
    config = read_config(arch.config, raw)
    head = read_head(folder) or head_of(folder)
    if getattr(config, "whole", False):
        head = head or class_head(folder, raw) or default_head()
        config = config.giving(output_of(folder, head, config.hidden_size))
    else:
        require_last(folder, head)
    if quantized is not None and quantized.rounds_inputs:
        arch = with_bit_linears(arch)
    if (drafts := raw.get(DRAFT_HEAD_FIELD)) is not None:
        arch = with_head(arch, config, DraftHead(**drafts))
    return Described(arch, config, raw, head, part is not None)


def _unknown(folder: Path, whole: dict[str, Any], name: object) -> str:
    """Return the error message for an unsupported model_type, with supported ones like it."""
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
    known = [*families(), *READ]
    near = get_close_matches(str(name)[:100], known, n=4, cutoff=0.5)
    return (
        f"{said}, a family of models that is not supported"
        + (f"; similar names are {', '.join(near)}" if near else "")
        + f". All {len(known)} are listed by: wherry list --supported (docs/models.md)"
    )
