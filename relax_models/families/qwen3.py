"""Qwen3 dense decoders: Llama with an RMSNorm over each query and key head."""

from __future__ import annotations

from ..arch import Architecture
from ..blocks import qk_norm
from ..decoder import WEIGHTS
from ..lineages.qwen import Qwen3Config

ARCH = Architecture(name="qwen3", config=Qwen3Config, model=qk_norm.CausalLM, weights=WEIGHTS)
