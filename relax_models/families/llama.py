"""Llama decoders (Llama 2, 3, 3.x, SmolLM and all other models with `model_type: llama`)."""

from __future__ import annotations

from ..arch import Architecture
from ..decoder import WEIGHTS, CausalLM
from ..lineages.llama import LlamaConfig

ARCH = Architecture(name="llama", config=LlamaConfig, model=CausalLM, weights=WEIGHTS)
