"""Makes a config.json of a GGUF file's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import ModelError, listing, shown

from .families import FAMILIES, MIXTRAL, Family
from .fields import Fields
from .header import Header, StoredTensor
from .rope import rope

_COMMON = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "context_length": "max_position_embeddings",
}
# Values that say again what others or the tensors say, or are about the file's making.
_NO_EFFECT = ("vocab_size", "attention.layer_norm_epsilon", "rope.scaling.finetuned")
_EPSILON = "attention.layer_norm_rms_epsilon"
_27B = {"gemma2": 46, "gemma3": 62}  # layers of the models that scale scores by hidden / heads


def family_of(header: Header) -> Family:
    """The family of a file.

    Raises:
        ModelError: its architecture is not read; lists those that are.
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
    """The fields of config.json.

    Args:
        header: whose metadata are read.
        tensors: of all files of the model, by GGUF's names.
        family: `family_of` the header.

    Raises:
        ModelError: lists what is missing, and what is not known.
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
    """Check a value that may only be one."""
    found = fields.integer(name, expected)
    if found != expected:
        fields.problems.append(f"{fields.prefix}{name}: found {found}, supported is {expected}")


def _nothing(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _gemma2(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sliding_window": fields.integer("attention.sliding_window"),
        "query_pre_attn_scalar": _query_scale(fields, made),
    }


def _gemma3(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    """Five windowed layers, then one without; they have a RoPE of their own."""
    _equal(fields, "attention.sliding_window_pattern", 6)
    own = {"rope_local_base_freq": fields.number("rope.freq_base_swa", 10000.0)}
    if "attention.sliding_window" in fields:
        own["sliding_window"] = fields.integer("attention.sliding_window")
    return {**own, "query_pre_attn_scalar": _query_scale(fields, made)}


def _query_scale(fields: Fields, made: Mapping[str, Any]) -> int:
    """llama.cpp tells the largest models by their layers: no value of the metadata does."""
    name = fields.prefix.removesuffix(".")
    if made["num_hidden_layers"] == _27B[name]:
        return int(made["hidden_size"]) // max(int(made["num_attention_heads"]), 1)
    return int(made["head_dim"])


def _phi3(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    window = fields.integer("attention.sliding_window", 0)
    return {"sliding_window": window or None}


def _smollm3(fields: Fields, made: Mapping[str, Any]) -> dict[str, Any]:
    """Every fourth layer has no RoPE, in all published models and in llama.cpp."""
    return {"no_rope_layer_interval": 4, "use_sliding_window": False}


_OWN = {
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
    "smollm3": _smollm3,
}
