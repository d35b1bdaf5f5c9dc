"""Phi-1, 1.5 and 2 decoders: parallel attention and feed-forward, partial RoPE, biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import classic
from ..arch import Architecture, concat, rename
from ..blocks import head_norms
from ..decoder import TIED

KINDS = ("weight", "bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhiConfig(classic.ClassicConfig):
    """Fields of Phi's config.json that shape the computation."""

    qk_layernorm: bool = False
    HEAD_BIAS: ClassVar[bool] = True
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"partial_rotary_factor": 0.5}


class Block(classic.ParallelBlock):
    attention = head_norms.Attention


class Decoder(classic.ParallelDecoder):
    block = Block


class CausalLM(classic.BiasedLM):
    decoder = Decoder


NAMES: Mapping[str, str] = {
    "self_attn.o_proj": "self_attn.dense",
    "mlp.up_proj": "mlp.fc1",
    "mlp.down_proj": "mlp.fc2",
    "model.norm": "model.final_layernorm",
}
ARCH = Architecture(
    name="phi",
    config=PhiConfig,
    model=CausalLM,
    weights=(
        *(concat(f"qkv_proj.{k}", f"q_proj.{k}", f"k_proj.{k}", f"v_proj.{k}") for k in KINDS),
        TIED,
        *(
            rename(f"{param}.{kind}", f"{source}.{kind}")
            for param, source in NAMES.items()
            for kind in KINDS
        ),
        *head_norms.SHARED,
    ),
)
