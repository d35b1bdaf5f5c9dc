"""The kinds of projector files of GGUF: what their fields and tensors are in a model's folder.

The fields and names are those of llama.cpp's `gguf-py/gguf/constants.py`. What a missing field
means is that of its `conversion/` and of `tools/mtmd/clip.cpp`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .fields import Fields

_log = logging.getLogger(__name__)
_BICUBIC, _LANCZOS = 3, 1  # of PIL.Image.Resampling
# Features of an image of Qwen's, which its files do not bound.
_LEAST_FEATURES, _MOST_FEATURES = 8, 4096
_MOST_LAYERS = 2**12  # a damaged file may say any number

# (fields of vision, fields besides, fields of the text model) -> (config.json without text_config
# and image_token_id, preprocessor_config.json)
Reader = Callable[[Fields, Fields, Mapping[str, Any]], tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectorFamily:
    """The models of a `clip.projector_type`."""

    models: Mapping[str, str]  # model_type of a text model -> of the complete model
    placeholder: str  # the token in whose place features stand
    features: str  # the tensor whose first axis is an element of a feature
    read: Reader
    # Tensor names in GGUF -> in the checkpoint: those outside of layers; those below "v.blk.N.",
    # and what is before them; those below "v.deepstack.N.", of the layers with such tensors.
    outer: Mapping[str, str]
    layers: str
    layer: Mapping[str, str]
    deeper: str = ""
    deep: Mapping[str, str] | None = None


def _smolvlm(
    vision: Fields, clip: Fields, _text: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    tower: dict[str, Any] = {
        "hidden_size": vision.integer("embedding_length"),
        "intermediate_size": vision.integer("feed_forward_length"),
        "num_hidden_layers": vision.integer("block_count"),
        "num_attention_heads": vision.integer("attention.head_count"),
        "image_size": vision.integer("image_size"),
        "patch_size": vision.integer("patch_size"),
        "layer_norm_eps": vision.number("attention.layer_norm_epsilon"),
        "hidden_act": _activation(clip),
    }
    scale = vision.integer("projector.scale_factor")
    side, splits = tower["image_size"], "preproc_image_size" in vision
    processor = {
        "size": {"longest_edge": vision.integer("preproc_image_size", side)},
        "max_image_size": {"longest_edge": side},
        "resample": _LANCZOS,
        "do_image_splitting": True,
        **_channels(vision),
    }
    heads = tower["num_attention_heads"]
    vision.expect("attention.head_count_kv", heads)
    vision.expect("attention.head_dim", tower["hidden_size"] // max(heads, 1))
    if not splits:
        _log.warning(
            "The projector's file does not say to which size images are scaled "
            "(%spreproc_image_size): each is one tile of %d x %d pixels, as llama.cpp's converter "
            "has it by default.",
            *(vision.prefix, side, side),
        )
    return {"vision_config": tower, "scale_factor": scale}, processor


def _qwen3_vl(
    vision: Fields, clip: Fields, text: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    patch, merge = vision.integer("patch_size"), vision.integer("spatial_merge_size", 2)
    depth, side = vision.integer("block_count"), vision.integer("image_size") // max(patch, 1)
    tower: dict[str, Any] = {
        "depth": depth,
        "hidden_size": vision.integer("embedding_length"),
        "intermediate_size": vision.integer("feed_forward_length"),
        "num_heads": vision.integer("attention.head_count"),
        "patch_size": patch,
        "spatial_merge_size": merge,
        "num_position_embeddings": side**2,
        "out_hidden_size": text["hidden_size"],
        "hidden_act": _activation(clip),
        "deepstack_visual_indexes": deep_layers(vision, depth),
    }
    area = (patch * merge) ** 2
    processor = {
        "patch_size": patch,
        "merge_size": merge,
        "size": {"shortest_edge": _LEAST_FEATURES * area, "longest_edge": _MOST_FEATURES * area},
        "resample": _BICUBIC,
        **_channels(vision),
    }
    vision.ignore("attention.layer_norm_epsilon")  # the text model's; all such towers have 1e-6
    return {"vision_config": tower}, processor


def deep_layers(vision: Fields, depth: int) -> list[int]:
    """Return the layers after which DeepStack merges patches into features."""
    given = vision.layers("is_deepstack_layers", min(depth, _MOST_LAYERS), False)
    return [i for i, has in enumerate(given) if has]


_CONNECTOR = "mm.model.fc"
PROJECTORS: Mapping[str, ProjectorFamily] = {
    "idefics3": ProjectorFamily(
        models={"llama": "smolvlm"},
        placeholder="<image>",
        features=f"{_CONNECTOR}.weight",
        read=_smolvlm,
        outer={
            "v.patch_embd": "model.vision_model.embeddings.patch_embedding",
            "v.position_embd": "model.vision_model.embeddings.position_embedding",
            "v.post_ln": "model.vision_model.post_layernorm",
            _CONNECTOR: "model.connector.modality_projection.proj",
        },
        layers="model.vision_model.encoder.layers",
        layer={
            "attn_q": "self_attn.q_proj",
            "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj",
            "attn_out": "self_attn.out_proj",
            "ln1": "layer_norm1",
            "ln2": "layer_norm2",
            "ffn_up": "mlp.fc1",
            "ffn_down": "mlp.fc2",
        },
    ),
    "qwen3vl_merger": ProjectorFamily(
        models={
            "qwen3": "qwen3_vl",
            "qwen3_moe": "qwen3_vl_moe",
            "qwen3_5_text": "qwen3_5",
            "qwen3_5_moe_text": "qwen3_5_moe",
        },
        placeholder="<|image_pad|>",
        features="mm.2.weight",
        read=_qwen3_vl,
        outer={
            "v.patch_embd": "model.visual.patch_embed.proj",
            "v.position_embd": "model.visual.pos_embed",
            "v.post_ln": "model.visual.merger.norm",
            "mm.0": "model.visual.merger.linear_fc1",
            "mm.2": "model.visual.merger.linear_fc2",
        },
        layers="model.visual.blocks",
        layer={
            "attn_qkv": "attn.qkv",
            "attn_out": "attn.proj",
            "ln1": "norm1",
            "ln2": "norm2",
            "ffn_up": "mlp.linear_fc1",
            "ffn_down": "mlp.linear_fc2",
        },
        deeper="model.visual.deepstack_merger_list",
        deep={"norm": "norm", "fc1": "linear_fc1", "fc2": "linear_fc2"},
    ),
}


def _activation(clip: Fields) -> str:
    gelu, silu = clip.flag("use_gelu", False), clip.flag("use_silu", False)
    if gelu == silu:
        what = "both are true" if gelu else "neither is true, which means quick GELU"
        clip.problems.append(f"clip.use_gelu, clip.use_silu: {what}; supported is one of them")
    return "silu" if silu else "gelu_pytorch_tanh"


def _channels(vision: Fields) -> dict[str, list[float]]:
    """Return mean and standard deviation of the three channels, as the shortest decimals."""
    return {name: _three(vision, name) for name in ("image_mean", "image_std")}


def _three(vision: Fields, name: str) -> list[float]:
    given = vision.layers(name, 3)
    with np.errstate(over="ignore"):
        values = np.asarray(given, np.float32)
    if not np.isfinite(values).all() or (name == "image_std" and values.min() <= 0):
        vision.problems.append(f"{vision.prefix}{name}: found {given}")
    return [float(str(value)) for value in values]
