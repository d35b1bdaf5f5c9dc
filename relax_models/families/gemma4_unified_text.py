"""Gemma 4 decoders of the models with one encoder for all media, text: no per-layer embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ..arch import Architecture
from ..config import Positions, Range
from ..lineages import gemma4
from ..lineages.gemma4 import Gemma4Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma4UnifiedConfig(Gemma4Config):
    """Fields of Gemma4Unified's config.json that shape the computation."""

    max_position_embeddings: Positions = 262144
    sliding_window: Positions | None = 1024
    # Gemma4Unified has no per-layer inputs and no experts, which these fields switch on in Gemma 4.
    hidden_size_per_layer_input: Annotated[int, Range(0, 0)] = 0
    enable_moe_block: Literal[False] = False


ARCH = Architecture(
    name="gemma4_unified_text",
    config=Gemma4UnifiedConfig,
    model=gemma4.CausalLM,
    weights=gemma4.WEIGHTS,
)
