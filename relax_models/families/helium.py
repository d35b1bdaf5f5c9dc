"""Helium decoders: Llama with interleaved RoPE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon, Positions, Size
from ..decoder import PAIRED, WEIGHTS, Biases, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class HeliumConfig(decoder.DecoderConfig):
    """Fields of Helium's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-8
    attention_bias: bool = False
    mlp_bias: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 20, "rope_theta": 100000.0}

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, mlp=self.mlp_bias)


ARCH = Architecture(name="helium", config=HeliumConfig, model=CausalLM, weights=(*WEIGHTS, *PAIRED))
