"""Llama decoders (Llama 2, 3, 3.x, SmolLM and all other models with `model_type: llama`)."""

from __future__ import annotations

from dataclasses import dataclass

from .. import decoder
from ..arch import Architecture
from ..decoder import WEIGHTS, Biases, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig(decoder.DecoderConfig):
    """Fields of Llama's config.json that shape the computation."""

    attention_bias: bool = False
    mlp_bias: bool = False

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias, self.mlp_bias)


ARCH = Architecture(name="llama", config=LlamaConfig, model=CausalLM, weights=WEIGHTS)
