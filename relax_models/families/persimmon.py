"""Persimmon decoders (Adept): QK norm, half of a head rotates, squared ReLU, biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import classic
from ..arch import Architecture, rename, reorder
from ..blocks import head_norms
from ..config import Positions
from ..decoder import TIED
from ..layers.activations import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class PersimmonConfig(classic.ClassicConfig):
    """Fields of Persimmon's config.json that shape the computation."""

    hidden_act: Name = "relu2"
    max_position_embeddings: Positions = 16384
    qk_layernorm: bool = True
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"partial_rotary_factor": 0.5}


class Block(classic.Block):
    attention = head_norms.Attention


class Decoder(classic.Decoder):
    block = Block


class CausalLM(classic.CausalLM):
    decoder = Decoder


NAMES: Mapping[str, str] = {
    "self_attn.qkv_proj": "self_attn.query_key_value",
    "self_attn.o_proj": "self_attn.dense",
    "mlp.up_proj": "mlp.dense_h_to_4h",
    "mlp.down_proj": "mlp.dense_4h_to_h",
    "model.norm": "model.final_layernorm",
}
KINDS = ("weight", "bias")
ARCH = Architecture(
    name="persimmon",
    config=PersimmonConfig,
    model=CausalLM,
    weights=(
        TIED,
        *(rename(f"{o}.{kind}", f"{t}.{kind}") for o, t in NAMES.items() for kind in KINDS),
        *(reorder(f"query_key_value.{kind}", classic.by_head) for kind in KINDS),
        *head_norms.SHARED,
    ),
)
