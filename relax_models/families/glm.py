"""GLM-4 9B decoders: half of the dimensions rotate (interleaved RoPE); biases of q, k and v."""

from __future__ import annotations

from ..arch import Architecture
from ..decoder import CausalLM
from ..lineages import glm
from ..lineages.glm import GlmConfig

ARCH = Architecture(name="glm", config=GlmConfig, model=CausalLM, weights=glm.WEIGHTS)
