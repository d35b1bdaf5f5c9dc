"""Granite decoders: Llama with multipliers of embeddings, scores, residuals and logits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from wherry.ops import AttentionShape

from ..arch import Architecture
from ..config import Range
from ..decoder import WEIGHTS, CausalLM, ModelScales
from . import llama

Multiplier = Annotated[float, Range(1e-6, 1e6)]


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class ScaledConfig:
    """Multipliers of Granite's families."""

    embedding_multiplier: Multiplier = 1.0
    attention_multiplier: Multiplier = 1.0  # scale of attention scores, instead of 1 / sqrt(e)
    residual_multiplier: Multiplier = 1.0
    logits_scaling: Multiplier = 1.0  # divisor of logits

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape: AttentionShape = super().attention_shape(layer)  # type: ignore[misc]
        return replace(shape, scale=float(self.attention_multiplier))

    def scales(self) -> ModelScales:
        return ModelScales(
            embedding=float(self.embedding_multiplier),
            residual=float(self.residual_multiplier),
            logits=1 / self.logits_scaling,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteConfig(ScaledConfig, llama.LlamaConfig):
    """Fields of Granite's config.json that shape the computation."""


ARCH = Architecture(name="granite", config=GraniteConfig, model=CausalLM, weights=WEIGHTS)
