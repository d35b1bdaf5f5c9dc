"""MiniCPM decoders: Llama with scaled embeddings, residuals and logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture
from ..config import Factor, Positions, Size
from ..decoder import WEIGHTS, CausalLM, ModelScales


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniCPMConfig(decoder.DecoderConfig):
    """Fields of MiniCPM's config.json that shape the computation."""

    max_position_embeddings: Positions = 2048
    tie_word_embeddings: bool = True
    scale_emb: Factor = 1.0
    scale_depth: Factor = 1.0
    dim_model_base: Size = 1
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("mup_denominator",)  # affects training alone

    def scales(self) -> ModelScales:
        return ModelScales(
            embedding=float(self.scale_emb),
            residual=self.scale_depth / sqrt(self.num_hidden_layers),
            logits=self.dim_model_base / self.hidden_size,
        )


ARCH = Architecture(name="minicpm", config=MiniCPMConfig, model=CausalLM, weights=WEIGHTS)
