"""Qwen2 and Qwen2.5 decoders: Llama with biases of q, k and v; sliding windows in upper layers."""

from __future__ import annotations

from ..arch import Architecture
from ..decoder import WEIGHTS, CausalLM
from ..lineages.qwen import Qwen2Config

ARCH = Architecture(name="qwen2", config=Qwen2Config, model=CausalLM, weights=WEIGHTS)
