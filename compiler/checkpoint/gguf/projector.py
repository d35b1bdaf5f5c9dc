"""Reads a projector file of GGUF ("mmproj"): the vision tower that belongs to a text model.

`projector_kinds.py` has the kinds of such files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from wherry.errors import ModelError, listing, shown

from .fields import Fields
from .header import Header
from .opening import stamp, tensor_of
from .projector_kinds import PROJECTORS, ProjectorFamily, deep_layers
from .tensors import GgufCheckpoint, GgufTensor
from .types import READ

_ARCHITECTURE = "clip"
_EXCHANGED = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}


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
    if text["model_type"] not in family.models:
        return (
            f"has the projector {kind!r}, which belongs to text models of the family "
            f"{' or '.join(family.models)}; this one is of {text['model_type']}"
        )
    if family.placeholder not in tokens:
        return f"needs the token {family.placeholder!r}, which the text model does not have"
    width = next((t.shape[0] for t in header.tensors if t.name == family.features), None)
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
    own, processor = family.read(vision, clip, text)
    config = {
        "model_type": family.models[text["model_type"]],
        "text_config": dict(text),
        "image_token_id": tokens.index(family.placeholder),
        **own,
    }
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
    return config, processor


def open_projector(header: Header) -> GgufCheckpoint:
    """Open the tensors of a projector's file under their names in the checkpoint.

    Raises:
        ModelError: lists tensors that such a projector does not have, or whose type is not read.
    """
    names = _Names.of(header)
    tensors: dict[str, GgufTensor] = {}
    unknown = []
    for stored in header.tensors:
        name = names.of_tensor(stored.name)
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


@dataclass(frozen=True, slots=True)
class _Names:
    """The checkpoint's names of a file's tensors."""

    family: ProjectorFamily
    exchanged: frozenset[str]  # layers two of whose tensors have each other's names
    deep: tuple[int, ...]  # layers after which DeepStack merges patches

    @classmethod
    def of(cls, header: Header) -> _Names:
        """Return the names of the tensors of a file whose fields `config_with` has read."""
        vision = Fields(header.metadata, f"{_ARCHITECTURE}.vision")
        width = vision.integer("embedding_length")
        exchanged = {
            t.name.removesuffix(".ffn_down.weight")
            for t in header.tensors
            # Older converters exchanged the two names; llama.cpp tells such files in this way, too.
            if t.name.endswith(".ffn_down.weight") and t.shape[-1] == width != t.shape[0]
        }
        family = PROJECTORS[_kind(header)]
        deep = deep_layers(vision, vision.integer("block_count")) if family.deep else []
        return cls(family, frozenset(exchanged), tuple(deep))

    def of_tensor(self, stored: str) -> str | None:
        """Return the checkpoint's name of a tensor; None: the projector has none of this name."""
        family = self.family
        base, _, kind = stored.removesuffix(".1").rpartition(".")
        kind += stored[len(base) + 1 + len(kind) :]  # ".1" of a second frame
        if base in family.outer:
            return f"{family.outer[base]}.{kind}"
        layer, _, part = base.rpartition(".")
        above, _, number = layer.rpartition(".")
        if not number.isdecimal():
            return None
        if above == "v.blk" and part in family.layer:
            part = _EXCHANGED.get(part, part) if layer in self.exchanged else part
            return f"{family.layers}.{int(number)}.{family.layer[part]}.{kind}"
        if above == "v.deepstack" and part in (family.deep or {}) and int(number) in self.deep:
            place = self.deep.index(int(number))
            return f"{family.deeper}.{place}.{(family.deep or {})[part]}.{kind}"
        return None
