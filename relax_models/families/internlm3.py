"""InternLM3 decoders: Llama, with other names for two fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture
from ..config import Epsilon, Positions, Size
from ..decoder import WEIGHTS, CausalLM
from ..lineages.llama import LlamaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class InternLM3Config(LlamaConfig):
    """Fields of InternLM3's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 32768
    rms_norm_eps: Epsilon = 1e-5
    SPELLED: ClassVar[Mapping[str, str]] = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 2}

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Rename fields of checkpoints that transformers wrote with Llama's names."""
        own = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}
        return {own.get(name, name): value for name, value in given.items()}


ARCH = Architecture(name="internlm3", config=InternLM3Config, model=CausalLM, weights=WEIGHTS)
