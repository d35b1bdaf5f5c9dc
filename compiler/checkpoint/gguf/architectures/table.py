"""The GGUF architectures that are read, by their names in `general.architecture`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import ModelError, shown

from ..header import Header
from .dense import DENSE, MINISTRAL3, OLMO3
from .family import GgufFamily
from .hybrids import HYBRIDS
from .sparse import DEEPSEEK_V2, DEEPSEEK_V3, MIXTRAL, SPARSE

# An architecture of several families has one row, and a branch of `_variant`.
FAMILIES: Mapping[str, GgufFamily] = {
    **DENSE,
    **SPARSE,
    **HYBRIDS,
    "deepseek2": DEEPSEEK_V2,
}
_GLM_TOKENS = 154880
_SIGMOID = 2  # code of `expert_gating_func`


def family_of(header: Header) -> GgufFamily:
    """Return the family of a file's architecture.

    Raises:
        ModelError: the architecture is not supported, with those that are; or it is no model.
    """
    name = header.metadata.get("general.architecture")
    if what := _no_model(header.metadata, name):
        raise ModelError(f"{header.path} is {what}")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ModelError(
            f"{header.path} has the architecture {shown(name)}. Of GGUF are read: "
            f"{', '.join(sorted(FAMILIES))}. For another model give the original one: "
            "hf://ORG/NAME"
        )
    return _variant(name, header.metadata)


def _no_model(metadata: Mapping[str, Any], architecture: object) -> str:
    """Return what a file is that has no model, and what to do; "": it may have one."""
    kind = metadata.get("general.type")
    if kind == "adapter" or "adapter.type" in metadata:
        base = metadata.get("general.base_model.0.name") or metadata.get("general.basename")
        return (
            f"an adapter (LoRA) of {shown(base or architecture)}; complete models are read. "
            "Merge the two: llama-export-lora -m MODEL.gguf --lora FILE -o MERGED.gguf"
        )
    if kind == "mmproj" or architecture == "clip":
        return (
            "the part of a model that reads images or sound. Give the file of its text model; this "
            "one is taken from the same folder, or by --mmproj FILE"
        )
    if kind == "imatrix":
        return "an importance matrix, by which llama.cpp quantizes models. Give the model's file"
    return ""


def _variant(name: str, metadata: Mapping[str, Any]) -> GgufFamily:
    """Return the family of an architecture, which the metadata decide if it has several."""
    if name == "llama" and metadata.get("llama.expert_count"):
        return MIXTRAL
    if name == "olmo2" and "olmo2.attention.sliding_window" in metadata:
        return OLMO3
    if name == "mistral3" and "mistral3.attention.temperature_scale" in metadata:
        return MINISTRAL3
    if name == "deepseek2" and metadata.get("deepseek2.expert_gating_func") == _SIGMOID:
        return DEEPSEEK_V3
    if name == "deepseek2" and metadata.get("deepseek2.vocab_size") == _GLM_TOKENS:
        return DEEPSEEK_V3  # GLM-4.7-Flash, whose first files lack that field
    return FAMILIES[name]
