"""Seed-OSS decoders: Llama whose attention output projection may have a bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture
from ..config import Positions, Size
from ..decoder import WEIGHTS, Biases, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOssConfig(decoder.DecoderConfig):
    """Fields of SeedOss's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False
    mlp_bias: bool = False
    IGNORED: ClassVar[tuple[str, ...]] = ("residual_dropout",)

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_out_bias, self.mlp_bias)


ARCH = Architecture(name="seed_oss", config=SeedOssConfig, model=CausalLM, weights=WEIGHTS)
