"""Reads a model folder in Hugging Face's layout: architecture and configuration."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import wherry.models.families
from wherry.artifact.head import Head, ScoreHead
from wherry.errors import ModelError, UsageError
from wherry.hub.file_names import DRAFT_HEAD_FIELD
from wherry.hub.sentence_transformers import head_of
from wherry.models.arch import Architecture, read_config
from wherry.models.blocks.bit_linear import with_bit_linears
from wherry.models.drafts.eagle3 import DraftHead, with_head
from wherry.quant.scheme import DEFAULT, OF_ENCODERS

from .checkpoint.folder import ModelFolder
from .checkpoint.quantized.recognise import OF_EXPERTS
from .checkpoint.text_part import READ
from .encoders import class_head, default_head, output_of, require_last
from .towers import DescribedTower, tower_of

# The scheme of what no scheme of a quantized checkpoint holds: 4 bits would lose more than the
# first quantization. The experts of gpt-oss, in MXFP4, would take twice the memory in it: where a
# target has no kernels for them, they have 4 bits.
_OF_QUANTIZED = "q8f16_1"


@dataclass(frozen=True, slots=True)
class Described:
    """A model as its config.json describes it."""

    arch: Architecture
    config: Any  # an instance of arch.config
    folder: ModelFolder
    head: Head | None = None  # pooling or score head of a model that generates no text
    mtp: bool = False  # whether the block of multi-token prediction belongs to the model
    tower: DescribedTower | None = None  # computes features of images; None: it takes none

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
        described = replace(self, mtp=True)
        if "draft" not in described.entries:
            raise UsageError(f"--mtp drafts tokens; this model ({has}) writes none. Leave it out.")
        return described

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the library's entries: "forward" for models with an LM head, "embed" for others.

        transformers calls classes without an LM head "...Model", and some older classes with one
        "...LMHeadModel".
        """
        if getattr(self.config, "bidirectional", False):
            return ("embed",)
        if getattr(self.config, "reads_source", False):
            return ("forward", "encode")
        if isinstance(self.head, ScoreHead):
            return ("forward",)
        named = self.folder.raw.get("architectures") or ["?"]
        bare = all(name.endswith("Model") and "LMHead" not in name for name in named)
        if self.head or bare:
            return ("embed",)
        return ("forward", "embed", "draft") if self.mtp else ("forward", "embed")

    @property
    def default_scheme(self) -> str:
        """Return the name of the scheme of a model that is converted without `--quant`."""
        gguf, quantized = self.folder.gguf, self.folder.quantized
        if gguf:
            return gguf.scheme
        if quantized is not None and quantized.method != OF_EXPERTS:
            return _OF_QUANTIZED
        return OF_ENCODERS if getattr(self.config, "bidirectional", False) else DEFAULT


def architectures() -> list[str]:
    """Return the names of the family files that define an `ARCH`; `families` adds its aliases."""
    (folder,) = wherry.models.families.__path__
    return sorted(p.stem for p in Path(folder).glob("*.py") if "\nARCH = " in p.read_text())


def families() -> dict[str, Architecture]:
    """Return every supported `model_type` with its architecture."""
    by_name: dict[str, Architecture] = {}
    for name in architectures():
        arch: Architecture = importlib.import_module(f"wherry.models.families.{name}").ARCH
        by_name |= dict.fromkeys((arch.name, *arch.aliases), arch)
    return dict(sorted(by_name.items()))


def _family(name: object) -> Architecture | None:
    """Return the architecture of a `model_type`.

    If a family file has that name, no other family file is imported.
    """
    if isinstance(name, str) and name in architectures():
        arch: Architecture = importlib.import_module(f"wherry.models.families.{name}").ARCH
        return arch
    return families().get(str(name))


def describe(folder: ModelFolder) -> Described:
    """Return the architecture of config.json's `model_type`, its configuration and head.

    Raises:
        ModelError: there is no such architecture, or it does not support the configuration.
    """
    raw = folder.raw
    name = raw.get("model_type")
    arch = _family(name)
    if arch is None:
        raise ModelError(_unknown(folder.path, folder.config, name))
    classes = raw.get("architectures") or []
    if not isinstance(classes, list) or not all(isinstance(c, str) for c in classes):
        raise ModelError(
            f"{folder.path}/config.json has architectures {repr(classes)[:100]}; it is a list of "
            'names of classes, as ["LlamaForCausalLM"].'
        )
    config = read_config(arch.config, raw)
    head = folder.head or head_of(folder.sentence)
    if getattr(config, "bidirectional", False):
        head = head or class_head(folder) or default_head()
        config = config.giving(output_of(folder.path, head, config.hidden_size))
    else:
        require_last(folder, head)
    if folder.quantized is not None and folder.quantized.rounds_inputs:
        arch = with_bit_linears(arch)
    if (drafts := raw.get(DRAFT_HEAD_FIELD)) is not None:
        arch = with_head(arch, config, DraftHead(**drafts))
    # Features stand in the place of token embeddings, which models of vectors alone do without.
    sees = folder.text is not None and not head
    tower = tower_of(folder.path, folder.config, config.hidden_size) if sees else None
    return Described(arch, config, folder, head, tower=tower)


def _unknown(folder: Path, config: Mapping[str, Any], name: object) -> str:
    """Return the error message for an unsupported model_type, with supported ones like it."""
    said = f"{folder}/config.json has model_type {repr(config.get('model_type'))[:100]}"
    if name != config.get("model_type"):
        said += f", whose text_config has {repr(name)[:100]}"
    elif isinstance(config.get("text_config"), dict):
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
