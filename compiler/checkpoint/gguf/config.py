"""Converts the metadata of a GGUF file to the fields of Hugging Face's config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import ModelError, listing, shown

from .families import FAMILIES, MIXTRAL, Family
from .fields import Fields
from .header import Header, StoredTensor
from .rope import rope

# Metadata fields of every architecture -> fields of config.json.
_COMMON = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "context_length": "max_position_embeddings",
}
# Fields that repeat other fields or the tensors' shapes, or describe how the model was trained.
_NO_EFFECT = ("vocab_size", "attention.layer_norm_epsilon", "rope.scaling.finetuned")
_EPSILON = "attention.layer_norm_rms_epsilon"
_27B = {"gemma2": 46, "gemma3": 62}  # number of layers of the 27B models, see `_query_scale`


def family_of(header: Header) -> Family:
    """Return the family of a file's architecture.

    Raises:
        ModelError: the architecture is not supported; lists the supported ones.
    """
    name = header.metadata.get("general.architecture")
    if name == "llama" and header.metadata.get("llama.expert_count"):
        return MIXTRAL
    if not isinstance(name, str) or name not in FAMILIES:
        raise ModelError(
            f"{header.path} has the architecture {shown(name)}. Of GGUF are read: "
            f"{', '.join(sorted(FAMILIES))}. For another model give the original one: "
            "hf://ORG/NAME"
        )
    return FAMILIES[name]


def config_of(
    header: Header, tensors: Mapping[str, StoredTensor], family: Family
) -> dict[str, Any]:
    """Return the fields of config.json.

    Args:
        header: the header of the model's first file, which contains the metadata.
        tensors: the tensors of all files of the model, by their names in GGUF.
        family: the result of `family_of` for the header.

    Raises:
        ModelError: lists missing, unsupported and unknown fields.
    """
    name = str(header.metadata["general.architecture"])
    fields = Fields(header.metadata, name)
    made: dict[str, Any] = {
        "model_type": family.model_type,
        "architectures": [family.classes],
        **{ours: fields.integer(theirs) for theirs, ours in _COMMON.items()},
        family.epsilon: fields.number(_EPSILON),
        "tie_word_embeddings": "output.weight" not in tensors,
        **{ours: f"blk.0.{theirs}" in tensors for ours, theirs in family.flags.items()},
        **family.fixed,
    }
    if (embedding := tensors.get("token_embd.weight")) is None:
        fields.problems.append("token_embd.weight: missing")
    else:
        made["vocab_size"] = embedding.shape[0]
    heads = made["num_attention_heads"]
    made["num_key_value_heads"] = fields.integer("attention.head_count_kv", heads)
    usual = made["hidden_size"] // max(heads, 1)
    head = fields.integer("attention.key_length", usual)
    _equal(fields, "attention.value_length", head)
    if family.explicit_head:
        made["head_dim"] = head
    elif head != usual:
        fields.problems.append(f"{name}.attention.key_length: found {head}, expected {usual}")
    for theirs, ours in family.fields.items():
        if theirs in fields:
            whole = ours.startswith(("num_", "moe_", "shared_"))
            made[ours] = fields.integer(theirs) if whole else fields.number(theirs)
    made |= rope(fields, tensors, head, made)
    made |= _OWN.get(family.model_type, _nothing)(fields, made)
    if not fields.flag("attention.causal", True) or fields.integer("pooling_type", 0):
        fields.problems.append("it computes embeddings or scores; of GGUF, chat models are read")
    if fields.integer("expert_count", 0) and not any("expert" in n for n in family.fields):
        fields.problems.append(f"{name}.expert_count: this family is read without experts")
    fields.ignore(*_NO_EFFECT)
    fields.problems += [f"{name}.{u}: {shown(fields.values[u])}" for u in fields.unread()]
    if fields.problems:
        raise ModelError(
            f"{header.path} does not describe a model that is read; a value that is not known may "
            f"change the result:\n{listing(fields.problems)}"
        )
    return made


def _equal(fields: Fields, name: str, expected: int) -> None:
    """Report a problem if an integer field is present and differs from `expected`."""
    found = fields.integer(name, expected)
    if found != expected:
        fields.problems.append(f"{fields.prefix}{name}: found {found}, supported is {expected}")


def _nothing(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return no further fields: the architecture has none of its own."""
    return {}


def _gemma2(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sliding_window": fields.integer("attention.sliding_window"),
        "query_pre_attn_scalar": _query_scale(fields, made),
    }


def _gemma3(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of Gemma 3: every sixth layer has full attention, the others a window."""
    _equal(fields, "attention.sliding_window_pattern", 6)
    # Layers with a window have their own RoPE base.
    own = {"rope_local_base_freq": fields.number("rope.freq_base_swa", 10000.0)}
    if "attention.sliding_window" in fields:
        own["sliding_window"] = fields.integer("attention.sliding_window")
    return {**own, "query_pre_attn_scalar": _query_scale(fields, made)}


def _query_scale(fields: Fields, made: Mapping[str, Any]) -> int:
    """Return Gemma's query_pre_attn_scalar: hidden size / heads for 27B models, else head_dim.

    The metadata lack this value. llama.cpp recognizes a 27B model by its number of layers, too.
    """
    name = fields.prefix.removesuffix(".")
    if made["num_hidden_layers"] == _27B[name]:
        return int(made["hidden_size"]) // max(int(made["num_attention_heads"]), 1)
    return int(made["head_dim"])


def _phi3(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    window = fields.integer("attention.sliding_window", 0)
    return {"sliding_window": window or None}


def _smollm3(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of SmolLM3, which the metadata lack.

    Every fourth layer has no RoPE, in all published models and in llama.cpp.
    """
    return {"no_rope_layer_interval": 4, "use_sliding_window": False}


# Functions that return the additional fields of an architecture, by `Family.model_type`.
_OWN = {
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
    "smollm3": _smollm3,
}
