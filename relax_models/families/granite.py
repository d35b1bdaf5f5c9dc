"""Granite decoders: Llama with multipliers of embeddings, scores, residuals and logits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture
from ..config import Range
from ..decoder import WEIGHTS, CausalLM, Scales
from . import llama

Multiplier = Annotated[float, Range(1e-6, 1e6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteConfig(llama.LlamaConfig):
    """Fields of Granite's config.json that shape the computation."""

    embedding_multiplier: Multiplier = 1.0
    attention_multiplier: Multiplier = 1.0  # scale of attention scores, instead of 1 / sqrt(e)
    residual_multiplier: Multiplier = 1.0
    logits_scaling: Multiplier = 1.0  # divisor of logits

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, scale=float(self.attention_multiplier))

    def scales(self) -> Scales:
        return Scales(
            embedding=float(self.embedding_multiplier),
            residual=float(self.residual_multiplier),
            logits=1 / self.logits_scaling,
        )


ARCH = Architecture(name="granite", config=GraniteConfig, model=CausalLM, weights=WEIGHTS)
