"""Converts the metadata of a GGUF file to the fields of Hugging Face's config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import ModelError, listing, shown

from .architectures.family import GgufFamily
from .architectures.own_fields import OWN
from .fields import Fields
from .header import Header, TensorEntry
from .rope import rope

# Metadata fields of every architecture -> fields of config.json.
_COMMON = {
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "context_length": "max_position_embeddings",
}
# Fields that repeat other fields or the tensors' shapes, or describe how the model was trained.
_NO_EFFECT = (
    *("vocab_size", "attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon"),
    "rope.scaling.finetuned",
)


def config_of(
    header: Header, tensors: Mapping[str, TensorEntry], family: GgufFamily
) -> dict[str, Any]:
    """Return the fields of config.json.

    Args:
        header: the header of the model's first file, which contains the metadata.
        tensors: the tensors of all files of the model, by their names in GGUF.
        family: the result of `family_of` for the header.

    Raises:
        ModelError: lists missing, unsupported and unknown fields.
    """
    fields = Fields(header.metadata, str(header.metadata["general.architecture"]))
    config = _common(fields, tensors, family)
    config |= _heads(fields, family, config)
    for gguf_name, hf_name in family.fields.items():
        if gguf_name in fields:
            config[hf_name] = fields.value(gguf_name)
    if family.model_type in OWN:
        config |= OWN[family.model_type](fields, config, tensors)
    config |= rope(fields, tensors, _rotating(config), config)
    _refuse(fields, family)
    if fields.problems:
        raise ModelError(
            f"{header.path} does not describe a model that is read; a value that is not known may "
            f"change the result:\n{listing(fields.problems)}"
        )
    return config


def _common(
    fields: Fields, tensors: Mapping[str, TensorEntry], family: GgufFamily
) -> dict[str, Any]:
    """Return the fields that every family has."""
    gguf_name, hf_name = family.epsilon
    config: dict[str, Any] = {
        "model_type": family.model_type,
        "architectures": [family.classes],
        # The layers of multi-token prediction are counted as well.
        "num_hidden_layers": fields.integer("block_count")
        - fields.integer("nextn_predict_layers", 0),
        **{o: fields.integer(t) for t, o in _COMMON.items() if t not in family.varying},
        hf_name: fields.number(gguf_name),
        "tie_word_embeddings": "output.weight" not in tensors,
        **{o: f"blk.0.{t}" in tensors for o, t in family.flags.items()},
        **family.fixed,
    }
    if (embedding := tensors.get("token_embd.weight")) is None:
        fields.problems.append("token_embd.weight: missing")
    else:
        config["vocab_size"] = embedding.shape[0]
    return config


def _heads(fields: Fields, family: GgufFamily, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of heads and of their dimensions."""
    heads_config: dict[str, Any] = {}
    if "attention.head_count_kv" not in family.varying:
        heads = config["num_attention_heads"]
        heads_config["num_key_value_heads"] = fields.integer("attention.head_count_kv", heads)
    if family.own_heads:
        return heads_config
    usual = _usual(config)
    head = fields.integer("attention.key_length", usual)
    fields.expect("attention.value_length", head)
    if family.explicit_head:
        return {**heads_config, "head_dim": head}
    if head != usual:
        fields.problems.append(
            f"{fields.prefix}attention.key_length: found {head}, expected {usual}"
        )
    return heads_config


def _usual(config: Mapping[str, Any]) -> int:
    """Return the number of dimensions of a head that need not be said."""
    return int(config["hidden_size"]) // max(int(config["num_attention_heads"]), 1)


def _rotating(config: Mapping[str, Any]) -> int:
    """Return the number of dimensions of the part of a head that RoPE is for."""
    names = ("qk_rope_head_dim", "global_head_dim", "head_dim")
    return next((int(config[n]) for n in names if config.get(n)), _usual(config))


def _refuse(fields: Fields, family: GgufFamily) -> None:
    """Report what would make another model of the file, and all fields that were not read."""
    if not fields.flag("attention.causal", True) or fields.integer("pooling_type", 0):
        fields.problems.append("it computes embeddings or scores; of GGUF, chat models are read")
    if fields.integer("expert_count", 0) and not any("expert" in n for n in family.fields):
        fields.problems.append(f"{fields.prefix}expert_count: this family is read without experts")
    fields.ignore(*_NO_EFFECT, *family.ignored)
    fields.problems += [f"{fields.prefix}{u}: {shown(fields.values[u])}" for u in fields.unread()]
