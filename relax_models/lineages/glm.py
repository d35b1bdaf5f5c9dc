"""GLM-4's configuration and weight rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import WeightRule, concat, tie
from ..config import Epsilon, Positions, Size
from ..decoder import PAIRED, Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class GlmConfig(decoder.DecoderConfig):
    """Fields of Glm's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1.5625e-7
    attention_bias: bool = True
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 2, "partial_rotary_factor": 0.5}

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias)


WEIGHTS: tuple[WeightRule, ...] = (
    concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight"),
    concat("qkv_proj.bias", "q_proj.bias", "k_proj.bias", "v_proj.bias"),
    tie("lm_head.weight", "model.embed_tokens.weight"),
    *PAIRED,
)
