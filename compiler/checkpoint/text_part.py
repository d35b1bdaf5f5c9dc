"""Extracts the text model of a folder that also has vision or audio models.

In config.json, the text model's fields are in `text_config` or at the top level; in the checkpoint,
its tensors have a prefix. Converted weights get a config.json of the text model alone, so later
steps know nothing of the other models; what they know of a vision tower is in wherry-vision.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wherry.hub.file_names import DRAFT_HEAD_FIELD

# model_type of the whole model -> model_type of its text model, if `text_config` names none.
# Multimodal types that are not listed may compute text differently (cross-attention, a prefix with
# full attention).
READ: Mapping[str, str] = {
    "cohere2_vision": "cohere2",
    "exaone4_5": "exaone4",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "idefics3": "llama",
    "internvl": "qwen2",
    "lfm2_vl": "lfm2",
    "llama4": "llama4_text",
    "llava": "llama",
    "mistral3": "mistral",
    "muse_glimmer": "muse_glimmer_text",
    "qwen2_5_vl": "qwen2",
    "qwen2_vl": "qwen2",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
    "smolvlm": "llama",
}
# Text models that equal another family's if all position axes of a token have the same value.
_ALIKE = {
    "exaone4_5_text": "exaone4",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}
# Sections of M-RoPE of text models that take images with them, if config.json names none; axes take
# turns in all.
_SECTIONS = {
    "qwen3_5": (11, 11, 10),
    "qwen3_5_moe": (11, 11, 10),
    "qwen3_vl": (24, 20, 20),
    "qwen3_vl_moe": (24, 20, 20),
}
# Fields of text models that their family has, and the whole model's kind always the same.
_ALWAYS: Mapping[str, Mapping[str, Any]] = {"qwen3_vl_moe": {"norm_topk_prob": True}}
_OUTER = frozenset(
    "vision_config image_token_id video_token_id vision_start_token_id vision_end_token_id "
    "vision_token_id".split()
)
_PREFIXES = (
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
    ("model.language_model.", "model."),
    ("model.text_model.", "model."),
    *((name, name) for name in ("model.layers.", "model.embed_tokens.", "model.norm.", "lm_head.")),
    ("mtp.", "mtp."),
    ("draft_head.", "draft_head."),
)
_OF_BOTH = (
    *("architectures", "bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings"),
    "quantization_config",  # says whether linears round their rows
    DRAFT_HEAD_FIELD,
)


def text_part(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return config.json of the text model alone; None: the model is not multimodal."""
    kind = raw.get("model_type")
    if not isinstance(kind, str) or kind not in READ:
        return None
    given = raw.get("text_config")
    if isinstance(given, Mapping):
        own = dict(given)
    else:
        own = {name: value for name, value in raw.items() if name not in _OUTER | {"model_type"}}
    name = own.get("model_type") or READ[kind]
    own["model_type"] = _ALIKE.get(name, name) if isinstance(name, str) else name
    own |= {name: raw[name] for name in _OF_BOTH if raw.get(name) is not None}
    own |= _ALWAYS.get(kind, {})
    if kind in _SECTIONS:
        own = {"mrope_section": list(_SECTIONS[kind]), "mrope_interleaved": True, **own}
    for where in ("rope_scaling", "rope_parameters"):
        rope = own.get(where)
        if isinstance(rope, Mapping):
            if kind in _SECTIONS and rope.get("mrope_section") is not None:
                own["mrope_section"] = rope["mrope_section"]
            own[where] = _of_text(rope)
    return own


def _of_text(rope: Mapping[str, Any]) -> dict[str, Any]:
    """Return RoPE parameters without the sections of axes, which only images need."""
    if "mrope_section" not in rope:
        return dict(rope)
    kept = {n: v for n, v in rope.items() if n not in ("mrope_section", "mrope_interleaved")}
    return {n: "default" if v == "mrope" else v for n, v in kept.items()}


def text_names(names: Iterable[str]) -> dict[str, str]:
    """Return the text model's tensors: name in a text-only checkpoint -> name in this one."""
    text = {}
    for name in names:
        for prefix, alone in _PREFIXES:
            if name.startswith(prefix):
                text[alone + name.removeprefix(prefix)] = name
                break
    return text


def others(names: Iterable[str], text: Mapping[str, str]) -> dict[str, int]:
    """Count the tensors that do not belong to the text model, by the first part of their names."""
    counts: dict[str, int] = {}
    known = set(text.values())
    for name in names:
        if name not in known:
            first, _, rest = name.partition(".")
            part = rest.partition(".")[0] if first == "model" else first
            counts[part] = counts.get(part, 0) + 1
    return counts
