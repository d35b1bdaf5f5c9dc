"""Reads a projector file of GGUF ("mmproj"): the vision tower that belongs to a text model.

The fields and names are those of llama.cpp's `gguf-py/gguf/constants.py`. What a missing field
means is that of its `conversion/` and of `tools/mtmd/clip.cpp`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from wherry.errors import ModelError, listing, shown

from .fields import Fields
from .header import Header
from .opening import stamp, tensor_of
from .tensors import GgufCheckpoint, GgufTensor
from .types import READ

_log = logging.getLogger(__name__)
_ARCHITECTURE = "clip"
_LANCZOS = 1  # of PIL.Image.Resampling
# Tensor names in GGUF -> in the checkpoint: those outside of layers, and those below "v.blk.N.".
_OUTER = {
    "v.patch_embd": "model.vision_model.embeddings.patch_embedding",
    "v.position_embd": "model.vision_model.embeddings.position_embedding",
    "v.post_ln": "model.vision_model.post_layernorm",
    "mm.model.fc": "model.connector.modality_projection.proj",
}
_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_out": "self_attn.out_proj",
    "ln1": "layer_norm1",
    "ln2": "layer_norm2",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
_EXCHANGED = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
_FEATURES = "mm.model.fc.weight"  # [elements of a feature, elements of a block of patches]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectorFamily:
    """The models of a `clip.projector_type`."""

    model_type: str  # of the complete model
    text: str  # model_type of its text model
    placeholder: str  # the token in whose place features stand


PROJECTORS: Mapping[str, ProjectorFamily] = {
    "idefics3": ProjectorFamily(model_type="smolvlm", text="llama", placeholder="<image>"),
}


def misfit(header: Header, text: Mapping[str, Any], tokens: Sequence[str]) -> str:
    """Return why a file is not the projector of a text model; "": it is.

    Args:
        header: the header of the projector's file.
        text: fields of the text model's config.json.
        tokens: the text model's vocabulary.
    """
    architecture = header.metadata.get("general.architecture")
    if architecture != _ARCHITECTURE:
        return f"is no projector: its architecture is {shown(architecture)}, not {_ARCHITECTURE!r}"
    kind = _kind(header)
    family = PROJECTORS.get(kind) if isinstance(kind, str) else None
    if family is None:
        return f"has the projector {shown(kind)}. Of GGUF are read: {', '.join(PROJECTORS)}"
    if text["model_type"] != family.text:
        return (
            f"has the projector {kind!r}, which belongs to text models of the family "
            f"{family.text}; this one is of {text['model_type']}"
        )
    if family.placeholder not in tokens:
        return f"needs the token {family.placeholder!r}, which the text model does not have"
    width = next((t.shape[0] for t in header.tensors if t.name == _FEATURES), None)
    if width not in (None, text["hidden_size"]):
        return (
            f"computes features of {width} elements; the text model's rows have "
            f"{text['hidden_size']}"
        )
    return ""


def config_with(
    header: Header, text: Mapping[str, Any], tokens: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return config.json and preprocessor_config.json of a text model with a projector it fits.

    Raises:
        ModelError: lists missing, unsupported and unknown fields.
    """
    family = PROJECTORS[_kind(header)]
    metadata, prefix = header.metadata, f"{_ARCHITECTURE}.vision"
    vision = Fields(metadata, prefix)
    outer = {k: v for k, v in metadata.items() if not k.startswith(f"{prefix}.")}
    clip = Fields(outer, _ARCHITECTURE)
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
    config = {
        "model_type": family.model_type,
        "text_config": dict(text),
        "vision_config": tower,
        "scale_factor": vision.integer("projector.scale_factor"),
        "image_token_id": tokens.index(family.placeholder),
    }
    side, splits = tower["image_size"], "preproc_image_size" in vision
    processor = {
        "size": {"longest_edge": vision.integer("preproc_image_size", side)},
        "max_image_size": {"longest_edge": side},
        "resample": _LANCZOS,
        "do_image_splitting": True,
        "image_mean": _channels(vision, "image_mean"),
        "image_std": _channels(vision, "image_std"),
    }
    heads = tower["num_attention_heads"]
    vision.expect("attention.head_count_kv", heads)
    vision.expect("attention.head_dim", tower["hidden_size"] // max(heads, 1))
    vision.ignore("projector_type", "projection_dim")  # the tensors say the latter
    clip.expect("has_vision_encoder", True)
    clip.expect("has_audio_encoder", False)
    clip.ignore("projector_type", "has_text_encoder", "has_llava_projector")
    problems = [*clip.problems, *vision.problems]
    for fields in (clip, vision):
        problems += [f"{fields.prefix}{u}: {shown(fields.values[u])}" for u in fields.unread()]
    if problems:
        raise ModelError(
            f"{header.path} does not describe a projector that is read; a value that is not known "
            f"may change the result:\n{listing(problems)}"
        )
    if not splits:
        _log.warning(
            "%s does not say to which size images are scaled (%s.preproc_image_size): each is one "
            "tile of %d x %d pixels, as llama.cpp's converter has it by default.",
            *(header.path, prefix, side, side),
        )
    return config, processor


def open_projector(header: Header) -> GgufCheckpoint:
    """Open the tensors of a projector's file under their names in the checkpoint.

    Raises:
        ModelError: lists tensors that such a projector does not have, or whose type is not read.
    """
    width = header.metadata[f"{_ARCHITECTURE}.vision.embedding_length"]
    exchanged = {
        t.name.removesuffix(".ffn_down.weight")
        for t in header.tensors
        # Older converters exchanged the two names; llama.cpp tells such files in this way, too.
        if t.name.endswith(".ffn_down.weight") and t.shape[-1] == width != t.shape[0]
    }
    tensors: dict[str, GgufTensor] = {}
    unknown = []
    for stored in header.tensors:
        name = _name_of(stored.name, exchanged)
        if name is None or stored.layout.name not in READ:
            unknown.append(f"{stored.name} {list(stored.shape)}: {stored.layout.name}")
        else:
            tensors[name] = tensor_of(stored)
    if unknown:
        raise ModelError(
            f"{header.path} has tensors that are not read:\n{listing(unknown)}\n"
            f"Types that are read: {', '.join(READ)}."
        )
    path = header.path
    return GgufCheckpoint(path.parent, MappingProxyType(tensors), (path,), stamp(header))


def _kind(header: Header) -> Any:
    """Return the projector type, which files with a tower for sound, too, have for each."""
    both = (f"{_ARCHITECTURE}.projector_type", f"{_ARCHITECTURE}.vision.projector_type")
    return next((header.metadata[key] for key in both if key in header.metadata), None)


def _name_of(stored: str, exchanged: set[str]) -> str | None:
    """Return the checkpoint's name of a tensor; None: the projector has none of this name."""
    base, _, kind = stored.rpartition(".")
    if base in _OUTER:
        return f"{_OUTER[base]}.{kind}"
    layer, _, part = base.rpartition(".")
    number = layer.removeprefix("v.blk.")
    if not number.isdecimal() or layer == number or part not in _LAYER:
        return None
    part = _EXCHANGED.get(part, part) if layer in exchanged else part
    return f"model.vision_model.encoder.layers.{int(number)}.{_LAYER[part]}.{kind}"


def _activation(clip: Fields) -> str:
    gelu, silu = clip.flag("use_gelu", False), clip.flag("use_silu", False)
    if gelu == silu:
        what = "both are true" if gelu else "neither is true, which means quick GELU"
        clip.problems.append(f"clip.use_gelu, clip.use_silu: {what}; supported is one of them")
    return "silu" if silu else "gelu_pytorch_tanh"


def _channels(vision: Fields, name: str) -> list[float]:
    """Return a number for each of the three channels, as the shortest decimals."""
    given = vision.layers(name, 3)
    with np.errstate(over="ignore"):
        values = np.asarray(given, np.float32)
    if not np.isfinite(values).all() or (name == "image_std" and values.min() <= 0):
        vision.problems.append(f"{vision.prefix}{name}: found {given}")
    return [float(str(value)) for value in values]
