"""Llama's configuration, which many families extend."""

from __future__ import annotations

from dataclasses import dataclass

from .. import decoder
from ..decoder import Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig(decoder.DecoderConfig):
    """Fields of Llama's config.json that shape the computation."""

    attention_bias: bool = False
    mlp_bias: bool = False

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias, self.mlp_bias)
