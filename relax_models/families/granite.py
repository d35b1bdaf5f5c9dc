"""Granite decoders: Llama with multipliers of embeddings, scores, residuals and logits."""

from __future__ import annotations

from ..arch import Architecture
from ..decoder import WEIGHTS, CausalLM
from ..lineages.granite import GraniteConfig

ARCH = Architecture(name="granite", config=GraniteConfig, model=CausalLM, weights=WEIGHTS)
